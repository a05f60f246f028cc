-- I4: finished means no longer open.
select count(*) as left_figure, 0 as right_figure, count(*) as broken,
  (array_agg('req_' || replace(o.id::text, '-', '')))[1:10] as offenders
from open_request o join usage u on u.id = o.id
