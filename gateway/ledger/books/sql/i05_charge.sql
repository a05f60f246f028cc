-- I5: 0 <= charge <= hold.
select count(*) as left_figure, count(*) filter (where charge_nanos between 0 and hold_nanos) as right_figure,
  count(*) filter (where charge_nanos not between 0 and hold_nanos) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where charge_nanos not between 0 and hold_nanos))[1:10] as offenders
from usage
