-- note: writes down that an open request has started, or how far it is.
-- $1  uuid      request
-- $2  smallint  kind: 0 started, 1 progress
-- $3  smallint  per cent of a progress, else 0
-- $4  float8    seconds between two events of a progress at least
-- $5  int       per cent between two events of a progress at least
--
-- Under the lock of the open row, which settlement deletes first: nothing is noted of a request that has ended.
insert into webhook_event (request_id, kind, number, account_id, url, host, due_at)
select o.id, $2::smallint, $3::smallint, o.account_id, p.webhook, webhook_host(p.webhook), now()
from open_request o join request_payload p on p.id = o.id
where o.id = $1::uuid and p.webhook is not null and ($2::smallint = 0 or not exists (
  select from webhook_event e
  where e.request_id = $1 and e.kind = 1 and (e.created_at > now() - $4::float8 * interval '1 second' or e.number > $3::smallint - $5::int)
))
for share of o
on conflict do nothing
