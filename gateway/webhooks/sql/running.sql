-- running: open requests of which more than their end is to be told.
-- $1  uuid  the last id of the page before
-- $2  int   the most of a page
-- Answers id, pool and which events are wanted, by id.
select p.id, o.pool, p.webhook_events
from request_payload p join open_request o on o.id = p.id
where p.webhook is not null and p.id > $1 and p.webhook_events && array['started', 'progress']
order by p.id limit $2
