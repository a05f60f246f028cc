-- budget_alert: takes one budget of which more is used than was told, and writes an alert for each threshold that it has met since.
-- Answers how many; no row where there is none. One budget in each transaction, so that no lock is waited for while one is held.
with found as (
  select l.owner_kind, l.owner_id, l.period, l.since, l.limit_nanos, l.used_nanos, l.alerted
  from spending_limit l
  where l.alerted < 100 and l.used_nanos >= l.limit_nanos / 2 -- cheap, and rules nearly all out
    and l.since >= period_start(l.period, now()) and limit_reached(l.used_nanos, l.limit_nanos) > l.alerted
  limit 1 for no key update skip locked
), told as (
  update spending_limit l set alerted = limit_reached(f.used_nanos, f.limit_nanos) from found f
  where l.owner_kind = f.owner_kind and l.owner_id = f.owner_id and l.period = f.period
), written as (
  insert into limit_alert (id, account_id, owner_kind, owner_id, period, since, percent, used_nanos, limit_nanos, url)
  select gen_random_uuid(), a.id, f.owner_kind, f.owner_id, f.period, nullif(f.since, '-infinity'), t.percent, f.used_nanos, f.limit_nanos,
    a.alert_url
  from found f
  left join api_key k on f.owner_kind = 1 and k.id = f.owner_id
  join account a on a.id = case f.owner_kind when 0 then f.owner_id else k.account_id end
  cross join (values (50), (80), (100)) t (percent)
  where t.percent > f.alerted and t.percent <= limit_reached(f.used_nanos, f.limit_nanos)
  returning 1
)
select f.owner_id, (select count(*) from written) as alerts from found f
