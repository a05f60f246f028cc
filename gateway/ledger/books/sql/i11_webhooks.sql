-- I11: a finished request whose end was to be told has exactly one event of it, which was delivered, is to be told, or was tried until
-- it was given up; and no event tells the end of a request that has not ended. Events may outlive the outputs that are kept.
with judged as (
  select coalesce(o.id, e.request_id) as id, o.id is not null as wanted, e.request_id is not null as told,
    (e.request_id is not null and (e.delivered_at is not null or e.due_at is not null or e.tries > 0)
      and exists (select from usage u where u.id = e.request_id)) as whole
  from (select id from request_output where webhook is not null) o
  full join (select * from webhook_event where kind = 2) e on e.request_id = o.id
)
select count(*) filter (where wanted) as left_figure, count(*) filter (where wanted and told) as right_figure,
  count(*) filter (where not whole) as broken,
  (array_agg('req_' || replace(id::text, '-', '')) filter (where not whole))[1:10] as offenders
from judged
