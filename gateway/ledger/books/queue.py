"""I12 beside Redis: which open requests it has lost, for the sweeper to put back."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence

import asyncpg

from gateway.contract.ids import request_id_of
from gateway.queues.port import QueueUnavailable

Missing = Callable[[str, Sequence[str]], Awaitable[Collection[str] | None]]
"""`SettlerSide.missing`: which ids of a pool are neither queued, leased nor in the settlements."""

MOST_LOOKED_AT = 10_000


async def absent_note(connection: "asyncpg.Connection[asyncpg.Record]", missing: Missing | None) -> str:
    """Say how many open requests Redis does not hold at this moment: no fault, as long as they can be put back."""
    if missing is None:
        return "Redis was not looked at"
    pools: dict[str, list[str]] = defaultdict(list)
    for row in await connection.fetch("select id, pool from open_request order by id limit $1", MOST_LOOKED_AT):
        pools[row["pool"]].append(request_id_of(row["id"]))
    absent = 0
    for pool, ids in pools.items():
        try:
            found = await missing(pool, ids)
        except QueueUnavailable:
            return "Redis is away"
        if found is None:
            return "too many unsettled requests in Redis to look through"
        absent += len(found)
    return f"{absent} open requests are absent from Redis and wait for the sweeper" if absent else ""
