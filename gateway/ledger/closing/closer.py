"""The job of the settler that closes hours: in order, each in one transaction, one settler at a time."""

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import asyncpg
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors import Unavailable
from gateway.ledger.transaction import statements

log = structlog.get_logger()

MARGIN = timedelta(seconds=90)
"""How long after its end an hour is closed at the soonest: longer than any transaction of a settlement may last."""

EVERY_S = 20.0
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
BEHIND = 2 * DAY
_LOCK = 7_305_411
_CLOSED = "select greatest(closed_through, 'epoch') from rollup_state for update"
_SQL = files("gateway.ledger.closing") / "sql"
_WRITERS = (_SQL / "writers.sql").read_text("utf-8")


def _statements(*tables: str) -> dict[str, str]:
    return {table: (_SQL / f"{table.removeprefix('rollup_')}.sql").read_text("utf-8") for table in tables}


_HOURLY = _statements("rollup_hour_model", "rollup_hour_key")
_CHARGES = (_SQL / "day_charge.sql").read_text("utf-8")
_DAILY = _statements("rollup_day", "rollup_day_model", "rollup_day_key")


class HourCloser:
    """Closes hours once they are over. Several at once are fine: one works, the others wait for their next turn."""

    def __init__(self, engine: AsyncEngine, *, every_s: float = EVERY_S, margin: timedelta = MARGIN) -> None:
        self._engine = engine
        self._every_s = every_s
        self._margin = margin
        self._at_once = DAY

    async def run(self, stopping: asyncio.Event) -> None:
        """Close what is over until told to stop; while Postgres is away, wait."""
        while not stopping.is_set():
            try:
                while not stopping.is_set() and await self.close_next() is not None:
                    pass
            except Unavailable as error:
                log.warning("rollups.retry", error=type(error).__name__)
                self._at_once = HOUR  # a day may have been too much for one statement
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._every_s)

    async def close_next(self) -> datetime | None:
        """Close the next hour that has rows; answers through when all is closed then, None where nothing is over.

        Who is days behind closes a day at once, which takes a third of the time.
        """
        async with statements(self._engine) as connection:
            if not await connection.fetchval("select pg_try_advisory_xact_lock($1)", _LOCK):
                return None
            closed: datetime = await connection.fetchval(_CLOSED)
            now: datetime = await connection.fetchval("select now()")
            over = (now - self._margin).replace(minute=0, second=0, microsecond=0)
            if closed >= over:
                return None
            first: datetime | None = await connection.fetchval(
                "select min(hour) from usage_rollup where hour >= $1 and hour < $2", closed, over
            )
            ended = over if first is None else first + HOUR
            if first is not None and over - first > BEHIND:
                ended = max(ended, min(first + self._at_once, _midnight(first) + DAY))
            if await connection.fetchval(_WRITERS, ended):
                return None
            if first is not None:
                await _close_hours(connection, first, ended)
                await _add_charges(connection, closed, first, ended)
            await _close_days(connection, closed, first, ended)
            await connection.execute("update rollup_state set closed_through = $1", ended)
        return ended


async def _close_hours(connection: "asyncpg.Connection[asyncpg.Record]", first: datetime, ended: datetime) -> None:
    """Write hours into the hourly tables. What lies there already is written anew: so it may be done again."""
    for table, statement in _HOURLY.items():
        await connection.execute(f"delete from {table} where hour >= $1 and hour < $2", first, ended)
        await connection.execute(statement, first, ended)


async def _add_charges(
    connection: "asyncpg.Connection[asyncpg.Record]", closed: datetime, first: datetime, ended: datetime
) -> None:
    """Add hours of one day to the sums of that day, which are begun anew by its first hour."""
    day = _midnight(first)
    if closed <= day:
        await connection.execute("delete from rollup_day_charge where day = $1", day.date())
    await connection.execute(_CHARGES, first, ended)


async def _close_days(
    connection: "asyncpg.Connection[asyncpg.Record]", closed: datetime, first: datetime | None, ended: datetime
) -> None:
    """Write the days that are over now: that of the last closed hours, if this step leaves it."""
    for day in sorted({_midnight(at) for at in (closed, first) if at is not None}):
        if day + DAY <= ended:
            for table, statement in _DAILY.items():
                await connection.execute(f"delete from {table} where day = $1", day.date())
                await connection.execute(statement, day, day + DAY)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
