-- I8: a payload is kept of open requests only; settlement drops it.
with judged as (
  select p.id, o.id is not null as opened from request_payload p left join open_request o on o.id = p.id
)
select count(*) as left_figure, count(*) filter (where opened) as right_figure, count(*) filter (where not opened) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where not opened))[1:10] as offenders
from judged
