-- I8: held = the holds of open requests, per account.
with holds as (
  select account_id, sum(hold_nanos) as amount from open_request group by 1
), figures as (
  select coalesce(a.id, h.account_id) as id, coalesce(a.held_nanos, 0) as left_figure, coalesce(h.amount, 0) as right_figure
  from account a full join holds h on h.account_id = a.id
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg('account ' || id order by id) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
