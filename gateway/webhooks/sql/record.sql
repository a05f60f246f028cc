-- record: writes down one try, and what comes of it.
-- $1  uuid      request
-- $2  smallint  kind
-- $3  smallint  number
-- $4  smallint  the try, as `lease` counted it
-- $5  smallint  what the receiver answered; null where it did not
-- $6  int       milliseconds that the try took
-- $7  text      what went wrong; '' for a success
-- $8  float8    seconds to the next try; null where there is none
--
-- A success ends an event whoever else tries it. A failure speaks for its own try only: a later one, after its lease ran
-- out, decides for itself. What a later event of the request has made old news is not told again.
with written as (
  insert into webhook_delivery (request_id, kind, number, try, status, took_ms, error) values ($1, $2, $3, $4, $5, $6, $7::text)
  on conflict do nothing
)
update webhook_event w set
  delivered_at = case when $7 = '' then coalesce(w.delivered_at, now()) else w.delivered_at end,
  due_at = case when $7 <> '' and not (w.kind < 2 and exists (
      select from webhook_event l where l.request_id = w.request_id and (l.kind, l.number) > (w.kind, w.number)
    )) then now() + $8::float8 * interval '1 second' end
where w.request_id = $1 and w.kind = $2 and w.number = $3 and ($7 = '' or w.tries = $4)
