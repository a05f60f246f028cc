"""The sender's side of the outbox. Every method raises Unavailable while Postgres is away."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.ledger.transaction import statements
from gateway.webhooks.events import Due, EventKey, key_of

_SQL = files("gateway.webhooks") / "sql"
_LEASE, _RECORD, _NOTE, _RUNNING, _PRUNE = (
    (_SQL / f"{name}.sql").read_text("utf-8") for name in ("lease", "record", "note", "running", "prune")
)

MOST_PRUNED = 10_000


class Wanted(msgspec.Struct, frozen=True):
    """An open request of which more than its end is to be told."""

    request: UUID
    pool: str
    events: frozenset[str]


class Outbox:
    """Leases what is due, records what became of it, and forgets it in the end."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def lease(self, *, most_of_one: int, most: int, busy: Sequence[str], lease_s: float) -> list[Due]:
        """Take due events, at most `most_of_one` of each receiver and none of the `busy` ones."""
        rows = await self._run(_LEASE, most_of_one, list(busy), most, lease_s)
        return [
            Due(
                key=key_of(row["request_id"], row["kind"], row["number"]),
                account_id=row["account_id"],
                url=row["url"],
                host=row["host"],
                created_at=row["created_at"],
                tries=row["tries"],
                round=row["round"],
            )
            for row in rows
        ]

    async def record(self, due: Due, *, status: int | None, took_ms: int, error: str, next_s: float | None) -> None:
        """Write one try down. Without `next_s`, a failure is the last."""
        await self._run(_RECORD, *due.key.columns, due.tries, status, took_ms, error, next_s)

    async def note(self, key: EventKey, *, every_s: float, every_percent: int) -> None:
        """Write down that a request has started, or how far it is, while it is open and nothing as new was told."""
        await self._run(_NOTE, *key.columns, every_s, every_percent)

    async def running(self, after: UUID, *, limit: int) -> list[Wanted]:
        """List open requests of which more than their end is wanted, by id, from the one after `after`."""
        rows = await self._run(_RUNNING, after, limit)
        return [Wanted(row["id"], row["pool"], frozenset(row["webhook_events"])) for row in rows]

    async def prune(self, keep_s: float) -> None:
        """Forget what was told or given up `keep_s` ago, with its tries, once its output is forgotten too."""
        await self._run(_PRUNE, keep_s, MOST_PRUNED)

    async def _run(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        async with statements(self._engine) as driver:
            rows: list[asyncpg.Record] = await driver.fetch(statement, *arguments)
            return rows
