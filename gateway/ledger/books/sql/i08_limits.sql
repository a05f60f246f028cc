-- I8: what counts against each budget of a period = the open holds and the charges of requests that were admitted in it, less refunds.
with counting as (
  select l.owner_kind, l.owner_id, l.period, l.since, k.id as api_key_id from spending_limit l
  join api_key k on l.owner_kind = 1 and k.id = l.owner_id
  union all
  select l.owner_kind, l.owner_id, l.period, l.since, k.id from spending_limit l
  join api_key k on l.owner_kind = 0 and k.account_id = l.owner_id
), amounts as (
  select c.owner_kind, c.owner_id, c.period, o.hold_nanos as amount
  from counting c join open_request o on o.api_key_id = c.api_key_id and o.created_at >= c.since
  union all
  select c.owner_kind, c.owner_id, c.period, u.charge_nanos
  from counting c join usage u on u.api_key_id = c.api_key_id and u.created_at >= c.since
  union all
  select c.owner_kind, c.owner_id, c.period, -r.amount_nanos
  from counting c join refund r on r.api_key_id = c.api_key_id join usage u on u.id = r.request_id and u.created_at >= c.since
), sums as (
  select owner_kind, owner_id, period, sum(amount) as amount from amounts group by 1, 2, 3
), figures as (
  select case l.owner_kind when 0 then 'account ' else 'key ' end || l.owner_id || ', budget by ' || l.period as name,
    l.used_nanos as left_figure, coalesce(s.amount, 0) as right_figure
  from spending_limit l left join sums s on (s.owner_kind, s.owner_id, s.period) = (l.owner_kind, l.owner_id, l.period)
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg(name order by name) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
