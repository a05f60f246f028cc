-- I4: a usage row and a charge of the same request, account and amount: exactly one minus on the account, one plus on revenue.
-- $1, $2: of what ended from one instant on to before another. Settlement writes both in one transaction, so with the same instant.
with charges as (
  select transaction_id as id, count(*) as entries,
    sum(amount_nanos) filter (where account_id = 0) as revenue,
    -sum(amount_nanos) filter (where account_id > 0) as charged,
    max(account_id) as account_id
  from ledger_entry where kind = 0 and at >= $1::timestamptz and at < $2::timestamptz group by 1
), pairs as (
  select coalesce(u.id, c.id) as id, u.id is not null as used,
    (u.id is not null and c.entries = 2 and c.revenue = u.charge_nanos and c.charged = u.charge_nanos and c.account_id = u.account_id) is true as whole
  from (select id, account_id, charge_nanos from usage where finished_at >= $1::timestamptz and finished_at < $2::timestamptz) u
    full join charges c on c.id = u.id
)
select count(*) filter (where used) as left_figure, count(*) filter (where whole) as right_figure,
  count(*) filter (where not whole) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where not whole))[1:10] as offenders
from pairs
