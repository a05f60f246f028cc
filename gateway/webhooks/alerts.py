"""Tells the operator's own address that the books broke, or hold again: signed, guarded, and tried again for a day."""

import asyncio
import contextlib
import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import msgspec
import structlog
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.money import books_run
from gateway.errors import FaregateError, Unavailable
from gateway.ledger.books.figures import BooksReport
from gateway.ledger.transaction import transaction
from gateway.net.client import check_url
from gateway.webhooks.schedule import next_s
from gateway.webhooks.signature import signed_headers

log = structlog.get_logger()

LOOK_S = 2.0
STALE = timedelta(days=2)
"""What is older is told nobody: it happened before there was an address, or all tries were made."""


class Turned(msgspec.Struct, frozen=True, kw_only=True):
    """A verification whose verdict is another than that of the one before."""

    id: UUID
    at: datetime
    green: bool
    tries: int
    report: BooksReport


class BooksAlerts:
    """Sends what is due to one address. Give it a guarded client."""

    def __init__(
        self, engine: AsyncEngine, client: httpx.AsyncClient, *, url: str, key: bytes, base_url: str, timeout_s: float
    ) -> None:
        self._engine = engine
        self._client = client
        self._url = url
        self._key = key
        self._base_url = base_url
        self._lease_s = 2 * timeout_s + 5

    async def run(self, stopping: asyncio.Event) -> None:
        """Send until told to stop."""
        while not stopping.is_set():
            try:
                await self.round()
            except Unavailable as error:
                log.warning("books.alert_retry", error=error.message)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), LOOK_S)

    async def round(self) -> int:
        """Tell what is due, the oldest first. Answers how many were tried."""
        tried = 0
        while (turned := await self._take()) is not None:
            tried += 1
            problem = await self._tell(turned)
            again_s = next_s(turned.tries) if problem else None
            await self._note(turned.id, again_s)
            log.info("books.alert", run=str(turned.id), green=turned.green, error=problem, tries=turned.tries)
        return tried

    async def _take(self) -> Turned | None:
        """Lease the oldest that is due, so that two settlers do not tell the same at once."""
        due = (
            select(books_run.c.id)
            .where(books_run.c.alert_due_at <= func.now(), books_run.c.at > func.now() - STALE)
            .order_by(books_run.c.alert_due_at)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        leased = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, self._lease_s)
        taken = (
            update(books_run)
            .where(books_run.c.id == due.scalar_subquery())
            .values(alert_due_at=leased, alert_tries=books_run.c.alert_tries + 1)
            .returning(books_run.c.id, books_run.c.at, books_run.c.green, books_run.c.alert_tries, books_run.c.report)
        )
        async with transaction(self._engine) as connection:
            row = (await connection.execute(taken)).one_or_none()
        if row is None:
            return None
        report = msgspec.convert(row.report, BooksReport)
        return Turned(id=row.id, at=row.at, green=row.green, tries=row.alert_tries, report=report)

    async def _note(self, run_id: UUID, again_s: float | None) -> None:
        due = None if again_s is None else func.now() + func.make_interval(0, 0, 0, 0, 0, 0, again_s)
        async with transaction(self._engine) as connection:
            await connection.execute(update(books_run).where(books_run.c.id == run_id).values(alert_due_at=due))

    async def _tell(self, turned: Turned) -> str:
        """Make one try; answers what went wrong, '' where nothing did."""
        body = msgspec.json.encode(alert_of(turned, self._base_url))
        try:
            headers = signed_headers([self._key], f"alert_{turned.id.hex}", int(time.time()), body)
            headers |= {"content-type": "application/json", "user-agent": "faregate-alerts"}
            check_url(self._url)
            async with self._client.stream("POST", self._url, content=body, headers=headers) as answer:
                return "" if 200 <= answer.status_code < 300 else f"answered {answer.status_code}"
        except FaregateError as error:
            return error.code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__


def alert_of(turned: Turned, base_url: str) -> dict[str, Any]:
    """Write what is told: the verdict, and of each broken statement its figures and the first that contradict it."""
    broken = [one for one in turned.report.checks if one.verdict == "broken"]
    return {
        "type": "books.hold" if turned.green else "books.broken",
        "timestamp": turned.at.isoformat(),
        "data": {
            "run_id": str(turned.id),
            "url": f"{base_url}/admin/books/runs/{turned.id}",
            "broken": [
                {
                    "invariant": one.invariant,
                    "statement": one.statement,
                    "difference_nanos": str(one.difference),
                    "broken": one.broken,
                    "first": list(one.offenders),
                }
                for one in broken
            ],
        },
    }
