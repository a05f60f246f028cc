-- I1. Every file here answers one row: left_figure, right_figure, broken (how many contradict the statement), offenders (the first ten).
select coalesce(sum(held_nanos), 0) as left_figure, 0 as right_figure,
  count(*) filter (where held_nanos <> 0) as broken,
  (array_agg('account ' || id order by id) filter (where held_nanos <> 0))[1:10] as offenders
from account
