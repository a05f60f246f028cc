-- I2: every ledger transaction sums to zero. $1, $2: of the entries from one instant on to before another; those of a transaction have one.
with sums as (select transaction_id, sum(amount_nanos) as amount from ledger_entry where at >= $1::timestamptz and at < $2::timestamptz group by 1)
select coalesce(sum(amount), 0) as left_figure, 0 as right_figure,
  count(*) filter (where amount <> 0) as broken,
  (array_agg('transaction ' || transaction_id) filter (where amount <> 0))[1:10] as offenders
from sums
