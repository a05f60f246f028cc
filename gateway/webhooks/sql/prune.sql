-- prune: forgets events that are over, with their tries, the oldest first.
-- $1  float8  seconds for which they are kept
-- $2  int     the most at once
with old as (
  select e.request_id, e.kind, e.number from webhook_event e
  where e.created_at < now() - $1::float8 * interval '1 second' and e.due_at is null
    and not exists (select from request_output r where r.id = e.request_id)
  order by e.created_at limit $2
), tries as (
  delete from webhook_delivery d using old o where d.request_id = o.request_id and d.kind = o.kind and d.number = o.number
)
delete from webhook_event e using old o where e.request_id = o.request_id and e.kind = o.kind and e.number = o.number
