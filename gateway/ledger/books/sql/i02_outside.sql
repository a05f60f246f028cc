-- I2: top-ups = what the ledger brought in from outside (top-ups are kind 1, adjustments 3), per account.
-- Charges (0) and refunds (2) move what is there already.
with booked as (
  select account_id, sum(amount_nanos) as amount from ledger_entry where kind in (1, 3) and account_id > 0 group by 1
), figures as (
  select coalesce(a.id, b.account_id) as id, coalesce(a.topped_up_nanos, 0) as left_figure, coalesce(b.amount, 0) as right_figure
  from account a full join booked b on b.account_id = a.id
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg('account ' || id order by id) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
