"""All invariants: in one consistent snapshot of Postgres, or day by day so that no snapshot lasts long."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.blobs.store import BlobStore
from gateway.ledger.books.executions import check_executions
from gateway.ledger.books.figures import BooksReport, Check, together
from gateway.ledger.books.outputs import check_media
from gateway.ledger.books.queue import Missing, absent_note
from gateway.ledger.books.rating import check_rating
from gateway.ledger.books.statements import STATEMENTS, check
from gateway.ledger.books.window import ALL_TIME, Window, windows_of
from gateway.ledger.transaction import snapshot

WORK_MEM = "64MB"
"""Whole tables are hashed; with the default of 4 MB that goes through files, at half the speed."""

_COUNTS = "select now() as at, (select count(*) from open_request) as open, (select count(*) from usage) as used"
_OLDEST = "select least((select min(finished_at) from usage), (select min(at) from ledger_entry)) as at"

Progress = Callable[[int, int], Awaitable[None]]
"""Told how many steps of how many are done."""


class Books:
    """Verifies the books. Redis and the blob store are looked at where they are given."""

    def __init__(self, engine: AsyncEngine, *, blobs: BlobStore | None = None, missing: Missing | None = None) -> None:
        self._engine = engine
        self._blobs = blobs
        self._missing = missing
        self._turn = asyncio.Lock()

    async def verify(self, *, allowed_repeats: int | None = None) -> BooksReport:
        """Check I1 to I13, one verification at a time. Raises Unavailable while Postgres is away.

        `allowed_repeats` bounds I9: how many executions beyond the charges the faults of a test explain.
        """
        async with self._turn, snapshot(self._engine) as connection:
            await connection.execute(f"set local work_mem = '{WORK_MEM}'")
            return await self.verify_in(connection, allowed_repeats)

    async def verify_in(
        self, connection: "asyncpg.Connection[asyncpg.Record]", allowed_repeats: int | None = None
    ) -> BooksReport:
        """Check I1 to I13 as the transaction of `connection` sees them."""
        by_row = await self._by_row(connection, ALL_TIME)
        return await self._report(connection, by_row, allowed_repeats)

    async def verify_by_days(self, since: datetime | None, progress: Progress) -> BooksReport:
        """Check I1 to I13 in many short snapshots, beside the traffic of a large system.

        Balances are compared with the sums of all rows, in one snapshot. Row by row (a charge against its usage row,
        a usage row against its price, an hour against its sum) it goes a day at a time, from `since` on; None is from
        the first. Such rows are never changed, and their like are written in one transaction, so each day proves the
        same whether it is seen together with the others or not.
        """
        async with self._turn:
            days = windows_of(since, None if since else await self._oldest(), datetime.now(UTC))
            by_row: list[list[Check]] = []
            for done, day in enumerate(days[:-1]):
                await progress(done, len(days) + 1)
                async with snapshot(self._engine) as connection:
                    await connection.execute(f"set local work_mem = '{WORK_MEM}'")
                    by_row.append(await self._by_row(connection, day))
            await progress(len(days) - 1, len(days) + 1)
            async with snapshot(self._engine) as connection:
                await connection.execute(f"set local work_mem = '{WORK_MEM}'")
                by_row.append(await self._by_row(connection, days[-1]))
                await progress(len(days), len(days) + 1)
                summed = [together(parts) for parts in zip(*by_row, strict=True)]
                report = await self._report(connection, summed, None)
            return msgspec.structs.replace(report, rows_since=since)

    async def _oldest(self) -> datetime | None:
        async with snapshot(self._engine) as connection:
            found: datetime | None = await connection.fetchval(_OLDEST)
            return found

    async def _by_row(self, connection: "asyncpg.Connection[asyncpg.Record]", window: Window) -> list[Check]:
        """Go through the rows of a window."""
        found = [await check(connection, one, 0, window) for one in STATEMENTS if one.of_window]
        return [*found, await check_rating(connection, window)]

    async def _report(
        self, connection: "asyncpg.Connection[asyncpg.Record]", by_row: list[Check], allowed_repeats: int | None
    ) -> BooksReport:
        """Check what is checked over everything at once, and put it together with what was found row by row."""
        counts = await connection.fetchrow(_COUNTS)
        assert counts is not None
        checks = [await check(connection, one, counts["open"]) for one in STATEMENTS if not one.of_window]
        checks += by_row
        checks.append(await check_executions(connection, allowed_repeats))
        checks.append(await check_media(connection, self._blobs))
        note = await absent_note(connection, self._missing)
        checks = [msgspec.structs.replace(one, note=note) if one.invariant == "I12" else one for one in checks]
        checks.sort(key=_number)
        return BooksReport(
            checked_at=counts["at"],
            open_requests=counts["open"],
            usage_rows=counts["used"],
            holds=all(one.verdict != "broken" for one in checks),
            checks=tuple(checks),
        )


def _number(one: Check) -> int:
    return int(one.invariant.removeprefix("I"))
