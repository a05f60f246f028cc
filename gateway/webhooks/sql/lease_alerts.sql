-- lease_alerts: takes alerts that are due, for one try each; whoever takes one tells it before its lease runs out, or another will.
-- $1  int     the most
-- $2  float8  seconds of the lease
with due as (
  select l.id from limit_alert l where l.url is not null and l.delivered_at is null and not l.given_up and l.due_at <= now()
  order by l.due_at limit $1 for update skip locked
)
update limit_alert l set due_at = now() + $2::float8 * interval '1 second', tries = l.tries + 1
from due d, account a where l.id = d.id and a.id = l.account_id
returning l.id, l.at, l.account_id, a.name as account, l.owner_kind, l.owner_id, l.period, l.since, l.percent, l.used_nanos, l.limit_nanos,
  l.url, l.tries, (select k.name from api_key k where l.owner_kind = 1 and k.id = l.owner_id) as key_name,
  period_end(l.period, coalesce(l.since, l.at)) as resets_at
