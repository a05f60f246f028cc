"""All invariants in one consistent snapshot of Postgres."""

import asyncio
from pathlib import Path

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.ledger.books.executions import check_executions
from gateway.ledger.books.figures import BooksReport, Check
from gateway.ledger.books.outputs import check_media
from gateway.ledger.books.queue import Missing, absent_note
from gateway.ledger.books.rating import check_rating
from gateway.ledger.books.statements import STATEMENTS, check
from gateway.ledger.transaction import snapshot

WORK_MEM = "64MB"
"""Whole tables are hashed; with the default of 4 MB that goes through files, at half the speed."""

_COUNTS = "select now() as at, (select count(*) from open_request) as open, (select count(*) from usage) as used"


class Books:
    """Verifies the books. Redis and the blob folder are looked at where they are given."""

    def __init__(self, engine: AsyncEngine, *, blob_dir: Path | None = None, missing: Missing | None = None) -> None:
        self._engine = engine
        self._blob_dir = blob_dir
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
        counts = await connection.fetchrow(_COUNTS)
        assert counts is not None
        checks = [await check(connection, statement, counts["open"]) for statement in STATEMENTS]
        checks.append(await check_rating(connection))
        checks.append(await check_executions(connection, allowed_repeats))
        checks.append(await check_media(connection, self._blob_dir))
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
