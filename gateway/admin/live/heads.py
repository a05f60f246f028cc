"""Who stands at the heads of the queues: accounts and requests, read for all pools in one transaction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.ids import request_id_of, uuid_of
from gateway.db.reading import reading

NEXT_HUNDRED = 100
SHOWN_REQUESTS = 8
SHOWN_TENANTS = 50

_TENANTS = text(
    """
    select h.pool, o.account_id, a.name, count(*) as waiting, min(h.place) as place, min(o.created_at) as oldest_at,
           count(*) filter (where h.place < :hundred) as soon
    from unnest(cast(:ids as uuid[]), cast(:pools as text[]), cast(:places as int[])) h(id, pool, place)
    join open_request o on o.id = h.id
    join account a on a.id = o.account_id
    group by h.pool, o.account_id, a.name
    order by h.pool, min(h.place)
    """
)
_REQUESTS = text(
    """
    select o.id, a.name, o.model_id, o.created_at from open_request o join account a on a.id = o.account_id
    where o.id = any(cast(:ids as uuid[]))
    """
)


class HeadTenant(msgspec.Struct, frozen=True, kw_only=True):
    """An account at the head of one queue."""

    account_id: int
    name: str
    waiting: int
    position: int
    soon: int
    """How many of the next hundred are its own."""
    oldest_at: datetime


class HeadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One of the first requests of a queue."""

    id: str
    account: str
    model_id: int
    created_at: datetime


class Heads(msgspec.Struct, frozen=True, kw_only=True):
    """What Postgres knows of the heads."""

    tenants: Mapping[str, Sequence[HeadTenant]]
    requests: Mapping[str, HeadRequest]


NO_HEADS = Heads(tenants={}, requests={})


async def read_heads(engine: AsyncEngine, heads: Mapping[str, Sequence[str]]) -> Heads:
    """Read whose the requests at the heads are; `heads` has their ids by pool. Raises Unavailable."""
    if not any(heads.values()):
        return NO_HEADS
    places = [(uuid_of(one), pool, at) for pool, ids in heads.items() for at, one in enumerate(ids)]
    first = [uuid_of(one) for ids in heads.values() for one in ids[:SHOWN_REQUESTS]]
    ids, pools, numbers = zip(*places, strict=True)
    given: dict[str, Any] = {
        "ids": list(ids),
        "pools": list(pools),
        "places": list(numbers),
        "hundred": NEXT_HUNDRED,
    }
    tenants: dict[str, list[HeadTenant]] = defaultdict(list)
    async with reading(engine) as connection:
        for row in await connection.execute(_TENANTS, given):
            tenants[row.pool].append(
                HeadTenant(
                    account_id=row.account_id,
                    name=row.name,
                    waiting=row.waiting,
                    position=row.place,
                    soon=row.soon,
                    oldest_at=row.oldest_at,
                )
            )
        rows = await connection.execute(_REQUESTS, {"ids": first})
        requests = {
            request_id_of(row.id): HeadRequest(
                id=request_id_of(row.id), account=row.name, model_id=row.model_id, created_at=row.created_at
            )
            for row in rows
        }
    return Heads(tenants=tenants, requests=requests)
