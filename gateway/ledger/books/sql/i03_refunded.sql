-- I3: each refund has its ledger transaction (kind 2), and each such transaction its refund: plus on the account, minus on
-- revenue (account 0), of the same amount.
with entries as (
  select transaction_id as id, count(*) as lines, sum(amount_nanos) filter (where account_id = 0) as revenue,
    sum(amount_nanos) filter (where account_id > 0) as amount, min(account_id) filter (where account_id > 0) as account_id
  from ledger_entry where kind = 2 group by 1
), judged as (
  select coalesce(r.id, e.id) as id, coalesce(r.amount_nanos, 0) as left_figure, coalesce(e.amount, 0) as right_figure,
    coalesce(e.lines = 2 and e.amount = r.amount_nanos and e.revenue = -r.amount_nanos and e.account_id = r.account_id, false) as right_so
  from refund r full join entries e on e.id = r.id
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where not right_so) as broken,
  (array_agg('refund ' || id order by id) filter (where not right_so))[1:10] as offenders
from judged
