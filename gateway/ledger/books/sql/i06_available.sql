-- I6: available >= 0 on prepaid accounts; a postpaid one may go down to its credit limit.
with judged as (
  select id, available_nanos >= case kind when 'prepaid' then 0 else -credit_limit_nanos end as within from account
)
select count(*) as left_figure, count(*) filter (where within) as right_figure, count(*) filter (where not within) as broken,
  (array_agg('account ' || id order by id) filter (where not within))[1:10] as offenders
from judged
