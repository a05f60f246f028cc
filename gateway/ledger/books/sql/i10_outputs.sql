-- I10: an output is kept with the settlement of the winning attempt only, so its request is finished.
with judged as (
  select r.id, u.id is not null as finished from request_output r left join usage u on u.id = r.id
)
select count(*) as left_figure, count(*) filter (where finished) as right_figure, count(*) filter (where not finished) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where not finished))[1:10] as offenders
from judged
