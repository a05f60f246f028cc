"""Works backtests off, one after the other."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

import asyncpg
import structlog
from sqlalchemy import BigInteger, CollectionAggregate, any_, literal, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.accounts import account, api_key
from gateway.errors import Unavailable
from gateway.ledger.transaction import transaction
from gateway.pricing.backtest import Backtest, BacktestResult, Group, Sums, largest_first
from gateway.reports.backtest.jobs import Backtests, Found
from gateway.reports.backtest.past import Stopped, SumsByKey, TooSlow, look, rate

log = structlog.get_logger()

EVERY_S = 1.0
AWAY_S = 2.0


class BacktestRunner:
    """Looks for backtests that wait, and runs them."""

    def __init__(self, engine: AsyncEngine, *, every_s: float = EVERY_S) -> None:
        self._engine = engine
        self._jobs = Backtests(engine)
        self._every_s = every_s

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until told to stop. One that is under way then, or when Postgres goes away, is begun again later."""
        while not stopping.is_set():
            wait_s = self._every_s
            try:
                if await self.run_one(stopping):
                    continue
            except Unavailable:
                wait_s = AWAY_S
            try:
                await asyncio.wait_for(stopping.wait(), wait_s)
            except TimeoutError:
                continue

    async def run_one(self, stopping: asyncio.Event | None = None) -> bool:
        """Run the next that waits; answers whether there was one. Raises Unavailable."""
        job = await self._jobs.claim()
        if job is None:
            return False
        began = time.monotonic()
        try:
            found = await self._found(job, began, stopping)
        except Stopped:
            log.info("backtest.stopped", backtest=job.id)
            return True
        except TooSlow:
            found = Found(failure="Postgres takes too long even for a thousand rows at once; try again later.")
        except (asyncpg.PostgresError, SQLAlchemyError, ValueError) as error:
            log.error("backtest.failed", backtest=job.id, exc_info=error)
            found = Found(failure=f"It could not be run: {type(error).__name__}. The settler's log has more.")
        await self._jobs.finish(job.id, found)
        took_ms = round((time.monotonic() - began) * 1000)
        log.info("backtest.finished", backtest=job.id, took_ms=took_ms, failed=bool(found.failure))
        return True

    async def _found(self, job: Backtest, began: float, stopping: asyncio.Event | None) -> Found:
        to_at = datetime.now(UTC)
        from_at = (to_at - timedelta(days=job.days)).replace(minute=0, second=0, microsecond=0)
        past = await look(self._engine, job.draft, from_at, to_at)

        async def progress(done: int) -> bool:
            wanted = await self._jobs.advance(job.id, done, max(past.rows, done))
            return wanted and not (stopping and stopping.is_set())

        if not await progress(0):
            raise Stopped
        sums = await rate(self._engine, past, progress)
        accounts, keys = await self._named(sums)
        total = Sums()
        for each in sums.values():
            total = total.plus(each)
        return Found(
            result=BacktestResult(
                from_at=from_at,
                to_at=to_at,
                took_ms=round((time.monotonic() - began) * 1000),
                total=total,
                accounts=len(accounts),
                keys=len(keys),
                by_account=largest_first(accounts),
                by_key=largest_first(keys),
            )
        )

    async def _named(self, sums: SumsByKey) -> tuple[list[Group], list[Group]]:
        """Group the sums by account and by key, with their names."""
        by_account: dict[int, Sums] = defaultdict(Sums)
        for (account_id, _), each in sums.items():
            by_account[account_id] = by_account[account_id].plus(each)
        key_ids = [key_id for _, key_id in sums]
        async with transaction(self._engine) as connection:
            named = await connection.execute(
                select(account.c.id, account.c.name).where(account.c.id == _any(by_account))
            )
            account_names: Mapping[int, str] = {row.id: row.name for row in named}
            called = await connection.execute(select(api_key.c.id, api_key.c.name).where(api_key.c.id == _any(key_ids)))
            key_names: Mapping[int, str] = {row.id: row.name for row in called}
        accounts = [
            Group(id=number, name=account_names.get(number, ""), account_id=number, sums=each)
            for number, each in by_account.items()
        ]
        keys = [
            Group(id=key_id, name=key_names.get(key_id, ""), account_id=account_id, sums=each)
            for (account_id, key_id), each in sums.items()
        ]
        return accounts, keys


def _any(ids: Iterable[int]) -> CollectionAggregate[bool]:
    return any_(literal(list(ids), ARRAY(BigInteger)))
