-- I3: what was refunded of a request is at most its charge, to the account and the key that were charged.
with given as (
  select request_id, sum(amount_nanos) as amount, bool_and(amount_nanos > 0) as above_zero,
    array_agg(distinct account_id) as accounts, array_agg(distinct api_key_id) as keys
  from refund group by 1
), judged as (
  select g.request_id, g.amount, coalesce(u.charge_nanos, 0) as charge,
    coalesce(g.above_zero and g.amount <= u.charge_nanos and g.accounts = array[u.account_id] and g.keys = array[u.api_key_id], false) as right_so
  from given g left join usage u on u.id = g.request_id
)
select coalesce(sum(amount), 0) as left_figure, coalesce(sum(least(amount, charge)), 0) as right_figure,
  count(*) filter (where not right_so) as broken,
  (array_agg('req_' || replace(request_id::text, '-', '') order by request_id) filter (where not right_so))[1:10] as offenders
from judged
