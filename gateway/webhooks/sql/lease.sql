-- lease: takes events that are due, for one try each; whoever takes one tells it before its lease runs out, or another will.
-- $1  int      the most of one receiver
-- $2  text[]   receivers that are to be left alone for now
-- $3  int      the most in all
-- $4  float8   seconds of the lease
-- Answers the events. Those of one request are told in their order: one that waits for an earlier one is not due.
--
-- The receivers are found by jumping from one to the next in the index (host, due_at), so that one with a million waiting
-- events costs what one with a single event costs, and neither hides the other.
with recursive hosts as (
  (select e.host from webhook_event e where e.due_at is not null order by e.host limit 1)
  union all
  select (select e.host from webhook_event e where e.due_at is not null and e.host > h.host order by e.host limit 1)
  from hosts h where h.host is not null
), due as (
  select d.* from hosts h cross join lateral (
    select e.request_id, e.kind, e.number from webhook_event e
    where e.host = h.host and e.due_at <= now() and not exists (
      select from webhook_event b
      where b.request_id = e.request_id and b.due_at is not null and (b.kind, b.number) < (e.kind, e.number)
    )
    order by e.due_at limit $1 for update skip locked
  ) d
  where h.host is not null and h.host <> all ($2::text[])
  limit $3
)
update webhook_event w set due_at = now() + $4::float8 * interval '1 second', tries = w.tries + 1, round = w.round + 1
from due d where w.request_id = d.request_id and w.kind = d.kind and w.number = d.number
returning w.request_id, w.kind, w.number, w.account_id, w.url, w.host, w.created_at, w.tries, w.round
