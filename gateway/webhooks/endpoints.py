"""Where webhooks go, and how well they arrive: each account's receivers, from the events of the last 24 hours."""

from datetime import datetime

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.reading import reading

MOST_EVENTS = 20_000
"""The latest events that figures are made from; where more came in 24 hours, the page says so."""
MOST_ENDPOINTS = 200

_ENDPOINTS = text(
    """
    with recent as (
      select * from webhook_event where created_at > now() - interval '24 hours' order by created_at desc limit :most
    ), tried as (
      select r.account_id, r.host, count(*) as tries, count(*) filter (where d.error = '') as good,
             percentile_cont(0.95) within group (order by d.took_ms) as p95_ms, max(d.at) as last_at
      from recent r join webhook_delivery d using (request_id, kind, number)
      group by 1, 2
    ), waiting as (
      select account_id, host, count(*) as pending, min(created_at) as oldest_at, max(url) as url
      from (select * from webhook_event where due_at is not null limit :most) due group by 1, 2
    ), told as (
      select account_id, host, count(*) as events, (array_agg(url order by created_at desc))[1] as url
      from recent group by 1, 2
    )
    select account_id, host, a.name as account, coalesce(told.url, waiting.url) as url,
           coalesce(told.events, 0) as events, coalesce(tried.tries, 0) as tries, coalesce(tried.good, 0) as good,
           tried.p95_ms, tried.last_at, coalesce(waiting.pending, 0) as pending, waiting.oldest_at
    from told full join waiting using (account_id, host) left join tried using (account_id, host)
    join account a on a.id = account_id
    order by waiting.oldest_at nulls last, coalesce(told.events, 0) desc, host
    limit :endpoints
    """
)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One receiver of one account."""

    account_id: int
    account: str
    host: str
    url: str
    """Where the latest of its events went."""
    events: int
    """Of the last 24 hours, as the two below."""
    tries: int
    good: int
    p95_ms: float | None
    last_at: datetime | None
    pending: int
    oldest_at: datetime | None
    """Since when the oldest waits that is not told yet."""


async def read_endpoints(engine: AsyncEngine) -> list[Endpoint]:
    """List receivers: those with something waiting first, the longest first. Raises Unavailable."""
    given = {"most": MOST_EVENTS, "endpoints": MOST_ENDPOINTS}
    async with reading(engine) as connection:
        rows = (await connection.execute(_ENDPOINTS, given)).all()
    return [Endpoint(**row._mapping) for row in rows]
