-- I3: spent = what usage rows were charged less what was refunded of them, per account.
with charged as (
  select account_id, sum(amount) as amount from (
    select account_id, charge_nanos as amount from usage
    union all
    select account_id, -amount_nanos from refund
  ) both_kinds group by 1
), figures as (
  select coalesce(a.id, c.account_id) as id, coalesce(a.spent_nanos, 0) as left_figure, coalesce(c.amount, 0) as right_figure
  from account a full join charged c on c.account_id = a.id
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg('account ' || id order by id) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
