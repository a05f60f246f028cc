-- key_alert: takes one key of whose budget in all more is used than was told, and writes an alert for each threshold that it has met since.
-- Answers how many; no row where there is none. One key in each transaction, so that no lock is waited for while one is held.
with found as (
  select k.id, k.account_id, k.budget_nanos, k.used_nanos, k.budget_alerted
  from api_key k
  where k.budget_nanos is not null and k.budget_alerted < 100 and k.used_nanos >= k.budget_nanos / 2 -- cheap, and rules nearly all out
    and k.revoked_at is null and limit_reached(k.used_nanos, k.budget_nanos) > k.budget_alerted
  limit 1 for no key update skip locked
), told as (
  update api_key k set budget_alerted = limit_reached(f.used_nanos, f.budget_nanos) from found f where k.id = f.id
), written as (
  insert into limit_alert (id, account_id, owner_kind, owner_id, period, since, percent, used_nanos, limit_nanos, url)
  select gen_random_uuid(), a.id, 1, f.id, 'total', null, t.percent, f.used_nanos, f.budget_nanos, a.alert_url
  from found f
  join account a on a.id = f.account_id
  cross join (values (50), (80), (100)) t (percent)
  where t.percent > f.budget_alerted and t.percent <= limit_reached(f.used_nanos, f.budget_nanos)
  returning 1
)
select f.id, (select count(*) from written) as alerts from found f
