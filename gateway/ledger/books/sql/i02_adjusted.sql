-- I2: each adjustment (kind 3) has exactly two entries, on two sides, of opposite amounts, with its reason; its id is no request's.
with adjustments as (
  select transaction_id, count(*) = 2 and count(distinct account_id) = 2 and sum(amount_nanos) = 0 and bool_and(coalesce(reason, '') <> '')
    and not exists (select from usage u where u.id = transaction_id) as whole
  from ledger_entry where kind = 3 group by 1
)
select count(*) as left_figure, count(*) filter (where whole) as right_figure, count(*) filter (where not whole) as broken,
  (array_agg('transaction ' || transaction_id order by transaction_id) filter (where not whole))[1:10] as offenders
from adjustments
