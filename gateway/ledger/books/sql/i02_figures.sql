-- I2: top-ups = available + held + spent, per account.
with figures as (
  select id, topped_up_nanos::numeric as left_figure, available_nanos::numeric + held_nanos + spent_nanos as right_figure from account
)
select coalesce(sum(left_figure), 0) as left_figure, coalesce(sum(right_figure), 0) as right_figure,
  count(*) filter (where left_figure <> right_figure) as broken,
  (array_agg('account ' || id order by id) filter (where left_figure <> right_figure))[1:10] as offenders
from figures
