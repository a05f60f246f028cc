"""The catalog in the memory of a gateway or settler.

It follows `revision.catalog` with one small statement every `every_s`, and reads everything again when
that has risen or a scheduled price comes into force. While Postgres is away the last snapshot serves.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from importlib.resources import files
from typing import Any

import asyncpg
import structlog
from sqlalchemy import Row, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.assemble import assemble
from gateway.catalog.entries import MAX_DEADLINE_S
from gateway.catalog.model import Snapshot
from gateway.db.session import is_unavailable
from gateway.errors import Unavailable

log = structlog.get_logger()

KEEP_PRICES_S = float(MAX_DEADLINE_S + 86_400)
"""A superseded price is kept for as long as a request that pinned it can be open, and a day more."""

TELL_S = 2.0
"""How often it is said again which revision is held."""

_READ = text((files("gateway.catalog") / "sql" / "snapshot.sql").read_text("utf-8"))


class SnapshotSource:
    """Holds the snapshot that all parts of a process read."""

    def __init__(self, engine: AsyncEngine, *, engines: str = "", every_s: float = 0.3) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._engines = frozenset(name.strip() for name in engines.split(",") if name.strip())
        self._every_s = every_s
        self._next_at: datetime | None = None
        self._turn = asyncio.Lock()
        self._snapshot = Snapshot(revision=-1, models={}, pools={}, prices={}, model_names={})
        self._told = (-1, 0.0)
        self.heard: Callable[[int], Awaitable[None]] | None = None
        """Told of each revision that was read, and again every few seconds."""
        self.refreshed_at = 0.0
        """When the snapshot was last known to be current, on the monotonic clock; 0 before the first reading."""

    def snapshot(self) -> Snapshot:
        """Give the snapshot as it stands."""
        return self._snapshot

    async def refresh(self) -> None:
        """Read what has changed, if anything has. Raises Unavailable while Postgres is away."""
        async with self._turn:
            began = time.monotonic()
            row = await self._read()
            if row.models is not None:
                self._snapshot = assemble(row.revision, row.models, row.pools, row.upstreams, row.prices, self._engines)
                self._next_at = row.next_at
            self.refreshed_at = began

    async def _read(self) -> Row[Any]:
        known = {"revision": self._snapshot.revision, "next_at": self._next_at, "keep_s": KEEP_PRICES_S}
        try:
            async with self._engine.connect() as connection:
                return (await connection.execute(_READ, known)).one()
        except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            if not is_unavailable(error):
                raise
            raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from error

    async def _tell(self) -> None:
        now, revision = time.monotonic(), self._snapshot.revision
        if self.heard is not None and (self._told[0] != revision or now - self._told[1] >= TELL_S):
            self._told = revision, now
            await self.heard(revision)

    async def run(self, stopping: asyncio.Event) -> None:
        """Follow the catalog until told to stop; an outage is waited out."""
        away = False
        while not stopping.is_set():
            try:
                await self.refresh()
                await self._tell()
                away = False
            except Unavailable:
                if not away:
                    log.warning("catalog.stale", revision=self._snapshot.revision)
                away = True
            try:
                await asyncio.wait_for(stopping.wait(), self._every_s)
            except TimeoutError:
                continue
