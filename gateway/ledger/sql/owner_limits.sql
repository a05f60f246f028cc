-- The limits of one owner as they stand now.
-- $1  0 an account, 1 a key
-- $2  its id
select 'budget' as kind, l.period as name, l.limit_nanos as most, null::bigint as burst,
  case when l.since < period_start(l.period, now()) then 0 else l.used_nanos end as used,
  nullif(period_start(l.period, now()), '-infinity') as since, period_end(l.period, now()) as resets_at
from spending_limit l where l.owner_kind = $1 and l.owner_id = $2
union all
select 'rate', r.what, r.most, r.burst, s.used, null, null
from rate_limit r cross join lateral slid(r, floor(extract(epoch from clock_timestamp()))::bigint) s
where r.owner_kind = $1 and r.owner_id = $2
