-- I3: spent, of all accounts = what charges (kind 0) less refunds (2) brought in as revenue, which is the ledger's account 0.
with figures as (
  select (select coalesce(sum(spent_nanos), 0) from account) as left_figure,
    (select coalesce(sum(amount_nanos), 0) from ledger_entry where account_id = 0 and kind in (0, 2)) as right_figure
)
select left_figure, right_figure, (left_figure <> right_figure)::int as broken,
  case when left_figure <> right_figure then array['account 0 (revenue)'] end as offenders
from figures
