"""In the settler: forgets what is neither money nor audit once its time is over, so that no table grows for ever.

What has a sweeper of its own is not here: outputs and idempotency keys (`open_requests.py`), media (`gateway/media`),
webhooks (`gateway/webhooks/forget.py`), backtests (90 days, when the next one is asked for). What stays for good is
money and what proves it: usage, attempts, ledger, refunds, sums, prices, payments that moved something, audit.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors import Unavailable
from gateway.ledger.transaction import statements

log = structlog.get_logger()

EVERY_S = 600.0
MOST_AT_ONCE = 10_000
"""Rows that one transaction deletes."""
KEEP_SESSIONS = timedelta(days=30)
"""How long a session that is over stands, for whoever looks into what was done in it."""
KEEP_ORDERS = timedelta(days=1)
"""How long the order to a worker stands after that was last there; its name is never another's."""

RECORDS: Mapping[str, str] = {
    "limit_alert": "at < now() - $1::interval",
    "books_job": "finished_at < now() - $1::interval",
    "books_run": "at < now() - $1::interval and id <> (select id from books_run order by at desc limit 1)",
    "payment_event": "at < now() - $1::interval and outcome = 'ignored'",
}
"""What of each table goes when it is older than records are kept. A payment that moved money, or should have, stays:
it is what keeps the same payment from being booked again. So does the last verdict about the books."""
SESSIONS: Mapping[str, str] = {"web_session": "expires_at < now() - $1::interval"}
ORDERS: Mapping[str, str] = {"pool_order": "seen_at < now() - $1::interval and worker <> ''"}
"""Orders to workers that are no more. Those to pools stand, a row a pool."""


class Retention:
    """Deletes what is over, some at a time. Several at once delete the same, and do no harm."""

    def __init__(self, engine: AsyncEngine, *, keep_records_s: float) -> None:
        self._engine = engine
        self._rules = [(table, over, timedelta(seconds=keep_records_s)) for table, over in RECORDS.items()]
        self._rules += [(table, over, KEEP_SESSIONS) for table, over in SESSIONS.items()]
        self._rules += [(table, over, KEEP_ORDERS) for table, over in ORDERS.items()]

    async def run(self, stopping: asyncio.Event) -> None:
        """Forget until told to stop; while Postgres is away, wait."""
        while not stopping.is_set():
            try:
                gone = await self.round()
                if any(gone.values()):
                    log.info("retention.forgot", **gone)
            except Unavailable as error:
                log.warning("retention.retry", error=error.message)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), EVERY_S)

    async def round(self) -> dict[str, int]:
        """Forget all that is over. Answers how many rows of each table went. Raises Unavailable."""
        return {table: await self._forget(table, over, kept) for table, over, kept in self._rules}

    async def _forget(self, table: str, over: str, kept: timedelta) -> int:
        gone, last = 0, MOST_AT_ONCE
        while last == MOST_AT_ONCE:
            async with statements(self._engine) as driver:
                done = await driver.execute(
                    f"delete from {table} where ctid = any (array(select ctid from {table} where {over} limit $2))",
                    kept,
                    MOST_AT_ONCE,
                )
            last = int(done.rpartition(" ")[2])
            gone += last
        return gone
