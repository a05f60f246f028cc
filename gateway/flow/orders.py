"""What operators told pools and workers: Postgres keeps it, and Redis has a copy that is made like it.

Workers read the copy with each take and each heartbeat, so it lies where they look. What Redis loses, or remembers
from before, a settler puts right within seconds. An order that Postgres knows nothing of, as an older release gave it,
stays.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

import structlog
from sqlalchemy import Row, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.operators import pool_order
from gateway.errors import Unavailable
from gateway.ledger.transaction import transaction
from gateway.queues.operators import OperatorSide
from gateway.queues.port import QueueUnavailable

log = structlog.get_logger()

EVERY_S = 1.0
SEEN_EVERY = timedelta(minutes=10)
"""How often it is noted that a worker with an order is still there."""
_LOCK = 7_305_403

Operator = Callable[[str], OperatorSide]


async def note_order(connection: AsyncConnection, pool: str, worker: str, *, stands: bool, actor: str) -> None:
    """Keep an order, or that it was lifted, in the transaction that gives it; `worker` is empty for the pool itself.

    Until that transaction ends no settler compares: it would undo what is not committed yet.
    """
    await connection.execute(text("select pg_advisory_xact_lock(:n)"), {"n": _LOCK})
    values = {"stands": stands, "actor": actor, "at": func.now(), "seen_at": func.now()}
    kept = insert(pool_order).values(pool=pool, worker=worker, **values)
    await connection.execute(kept.on_conflict_do_update(index_elements=["pool", "worker"], set_=values))


class OrderKeeper:
    """In the settler: makes Redis say what operators said. One of several does it at a time."""

    def __init__(self, engine: AsyncEngine, operator: Operator, *, every_s: float = EVERY_S) -> None:
        self._engine = engine
        self._operator = operator
        self._every_s = every_s

    async def run(self, stopping: asyncio.Event) -> None:
        """Compare until told to stop; while Postgres or Redis is away, wait."""
        while not stopping.is_set():
            try:
                await self.round()
            except (Unavailable, QueueUnavailable) as error:
                log.warning("orders.retry", error=str(error) or type(error).__name__)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._every_s)

    async def round(self) -> int:
        """Compare once. Answers how many orders were given again or lifted. Raises Unavailable or QueueUnavailable."""
        wanted = select(pool_order).order_by(pool_order.c.pool, pool_order.c.worker)
        done = 0
        async with transaction(self._engine) as connection:
            alone = await connection.execute(text("select pg_try_advisory_xact_lock(:n)"), {"n": _LOCK})
            if not alone.scalar_one():
                return 0
            rows = (await connection.execute(wanted)).all()
            for pool, orders in groupby(rows, key=lambda row: str(row.pool)):
                done += await self._restore(connection, pool, list(orders))
        return done

    async def _restore(self, connection: AsyncConnection, pool: str, orders: Sequence[Row[Any]]) -> int:
        side = self._operator(pool)
        look = await side.look(0)
        there = {seen.status.worker for seen in look.workers} | {""}
        stand = look.drained | ({""} if look.paused else set())
        done = 0
        for order in orders:
            if order.worker in there and order.stands != (order.worker in stand):
                await (side.drain(order.worker, on=order.stands) if order.worker else side.pause(on=order.stands))
                log.warning("orders.restored", pool=pool, worker=order.worker, stands=order.stands)
                done += 1
        seen = update(pool_order).where(pool_order.c.pool == pool, pool_order.c.worker.in_(there))
        stale = pool_order.c.seen_at < func.now() - SEEN_EVERY
        await connection.execute(seen.where(stale).values(seen_at=func.now()))
        return done
