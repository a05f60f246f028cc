"""Verifies the books by the clock, and when somebody asks: one settler at a time, beside the traffic."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors import Unavailable
from gateway.ledger.books.runs import BooksRun, BooksRuns, Trigger
from gateway.ledger.books.verify import Books, Progress
from gateway.ledger.transaction import transaction

log = structlog.get_logger()

LOCK = 7_305_402
LOOK_S = 2.0
"""Between two looks whether something is due or asked for."""
COMPLETE_EVERY = timedelta(hours=24)
"""All rows are gone through once a day; in between, those of the last 25 hours."""
LATEST = timedelta(hours=25)


class Told(Protocol):
    """Whoever shows how the books stand: the metrics of a settler."""

    def books(self, green: bool, checked_at: datetime) -> None:
        """Take over the last verdict."""


class BooksKeeper:
    """One settler's part in verifying the books. `quick` looks at Postgres alone, `complete` at the media too."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        quick: Books,
        complete: Books,
        every_s: float,
        told: Told,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._engine = engine
        self.runs = BooksRuns(engine)
        self._quick = quick
        self._complete = complete
        self._every = timedelta(seconds=every_s)
        self._told = told
        self._clock = clock

    async def run(self, stopping: asyncio.Event) -> None:
        """Verify until told to stop; what is under way is broken off, and done by another."""
        work = asyncio.create_task(self._look())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for task in (work, stopped):
            if not task.done():
                task.cancel()
        for done in await asyncio.gather(work, stopped, return_exceptions=True):
            if isinstance(done, Exception):
                raise done

    async def _look(self) -> None:
        while True:
            try:
                await self.round()
            except (Unavailable, TimeoutError, asyncpg.PostgresError) as error:
                log.warning("books.retry", error=str(error) or type(error).__name__)
            await asyncio.sleep(LOOK_S)

    async def round(self) -> BooksRun | None:
        """Do what is due, if anything is and no other settler does it. Answers what was found."""
        found: BooksRun | None = None
        asked = await self.runs.waiting()
        if asked is not None or await self._due():
            async with self._alone() as alone:
                if not alone:
                    return None
                asked = await self.runs.waiting()  # another may have done it before the lock was ours
                if asked is not None:
                    trigger: Trigger = "api" if asked.trigger == "api" else "dashboard"
                    found = await self._asked(asked.id, trigger)
                elif await self._due():
                    found = await self._scheduled()
        latest = found or await self.runs.latest()
        if latest is not None:
            self._told.books(latest.green, latest.at)
        return found

    async def _due(self) -> bool:
        if not self._every:
            return False
        last = await self.runs.scheduled_at()
        return last is None or self._clock() - last >= self._every

    async def _scheduled(self) -> BooksRun:
        now, last = self._clock(), await self.runs.complete_at()

        async def progress(done: int, in_all: int) -> None:
            log.debug("books.progress", done=done, in_all=in_all)

        if last is None or now - last >= COMPLETE_EVERY:
            return await self._verify(self._complete, None, "schedule", progress)
        since = (now - LATEST).replace(minute=0, second=0, microsecond=0)
        return await self._verify(self._quick, since, "schedule", progress)

    async def _asked(self, job_id: UUID, trigger: Trigger) -> BooksRun:
        async def progress(done: int, in_all: int) -> None:
            await self.runs.progress(job_id, done, in_all)

        try:
            found = await self._verify(self._complete, None, trigger, progress)
        except (TimeoutError, asyncpg.PostgresError) as error:
            await self.runs.finish(job_id, None, f"It broke off: {error or type(error).__name__}")
            raise
        await self.runs.finish(job_id, found.id)
        return found

    async def _verify(self, books: Books, since: datetime | None, trigger: Trigger, progress: Progress) -> BooksRun:
        began = time.monotonic()
        report = await books.verify_by_days(since, progress)
        run = await self.runs.keep(report, trigger, round((time.monotonic() - began) * 1000))
        broken = sorted({one.invariant for one in report.checks if one.verdict == "broken"})
        if broken:
            log.critical("books.broken", invariants=broken, run=str(run.id))
        else:
            log.info("books.hold", run=str(run.id), took_ms=run.took_ms, complete=run.complete)
        return run

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[bool]:
        """Hold the lock of verifying for the length of a block; answers whether it could be had."""
        async with transaction(self._engine) as connection:
            got = (await connection.execute(text("select pg_try_advisory_xact_lock(:n)"), {"n": LOCK})).scalar_one()
            yield bool(got)
