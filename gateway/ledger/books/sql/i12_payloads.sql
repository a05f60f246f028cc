-- I12: a kept open request can be put back into an emptied Redis from its payload.
with judged as (
  select o.id, p.id is not null as kept from open_request o left join request_payload p on p.id = o.id where o.keep
)
select count(*) as left_figure, count(*) filter (where kept) as right_figure, count(*) filter (where not kept) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where not kept))[1:10] as offenders
from judged
