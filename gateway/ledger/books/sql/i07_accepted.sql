-- I7: every accepted id that is still known of (by its idempotency key, payload or output) is open or finished.
with accepted as (
  select request_id as id from idempotency
  union select id from request_payload
  union select id from request_output
), judged as (
  select a.id, o.id is not null or u.id is not null as found
  from accepted a left join open_request o on o.id = a.id left join usage u on u.id = a.id
)
select count(*) as left_figure, count(*) filter (where found) as right_figure, count(*) filter (where not found) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where not found))[1:10] as offenders
from judged
