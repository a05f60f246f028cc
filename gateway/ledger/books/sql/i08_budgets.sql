-- I8: what counts against a key's budget = its open holds and its charges, less what was refunded of them, per key.
with spent as (
  select api_key_id, sum(amount) as amount from (
    select api_key_id, hold_nanos as amount from open_request
    union all
    select api_key_id, charge_nanos from usage
    union all
    select api_key_id, -amount_nanos from refund
  ) all_kinds group by 1
), figures as (
  select coalesce(k.id, s.api_key_id) as id, coalesce(k.used_nanos, 0) as left_figure, coalesce(s.amount, 0) as right_figure
  from api_key k full join spent s on s.api_key_id = k.id
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg('key ' || id order by id) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
