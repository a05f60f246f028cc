"""In the settler: no file outlives its time, and none is left that belongs to nothing.

A round looks at one page of the store, in the order of names, and begins anew after the last one. What a name says it
belongs to decides: the inputs and outputs of an open request stay; those of a finished one stay for their time, and
outputs of attempts that lost go at once; uploaded files go with their rows. What belongs to nothing that is known (a
call that was refused while its gateway was killed, an upload that broke off) goes after a day.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from importlib.resources import files
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.blobs.names import BlobOwner, born_ms, owner_of
from gateway.blobs.store import PAGE, BlobHead, BlobsAway, BlobStore
from gateway.db.files import file
from gateway.errors import Unavailable
from gateway.ledger.transaction import snapshot, transaction

log = structlog.get_logger()

UNKNOWN_S = 86_400.0
"""How old something must be to go because nothing is known of it: longer than any upload and any step of a workflow."""
TIDY_S = 3_600.0
"""How old the leavings of a write are when they go."""
MOST_EXPIRED = 1_000

_OWNERS = (files("gateway.media") / "sql" / "owners.sql").read_text("utf-8")
_NOW = "select extract(epoch from now())::float8"


class Swept(msgspec.Struct, frozen=True):
    """What one round did."""

    looked_at: int
    removed: int


class _Known(msgspec.Struct, frozen=True):
    attempt: int | None
    over: bool


class MediaSweeper:
    """Looks after the blob store. Several at once do the same work twice, and no harm."""

    def __init__(self, engine: AsyncEngine, blobs: BlobStore, *, keep_s: int, every_s: float) -> None:
        self._engine = engine
        self._blobs = blobs
        self._keep_s = keep_s
        self._every_s = every_s
        self._after = ""

    async def run(self, stopping: asyncio.Event) -> None:
        """Sweep until told to stop; while Postgres or the store is away, wait."""
        while not stopping.is_set():
            try:
                swept = await self.round()
                if swept.removed:
                    log.info("media.swept", looked_at=swept.looked_at, removed=swept.removed)
            except (BlobsAway, Unavailable) as error:
                log.warning("media.retry", error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._every_s)

    async def round(self) -> Swept:
        """Look at one page, and at files whose time is over."""
        expired = await self._expire_files()
        page = await self._blobs.page(after=self._after)
        self._after = page[-1].name if len(page) == PAGE else ""
        doomed = await self._doomed(page)
        await self._blobs.delete(doomed)
        if not self._after:
            await self._blobs.tidy(TIDY_S)
        return Swept(len(page), expired + len(doomed))

    async def _expire_files(self) -> int:
        """Forget files whose time is over, then remove them: what a crash leaves between the two has no row."""
        over = select(file.c.id).where(file.c.expires_at <= func.now()).order_by(file.c.expires_at).limit(MOST_EXPIRED)
        async with transaction(self._engine) as connection:
            gone = await connection.execute(delete(file).where(file.c.id.in_(over)).returning(file.c.blob))
            names = list(gone.scalars())
        await self._blobs.delete(names)
        return len(names)

    async def _doomed(self, page: Sequence[BlobHead]) -> list[str]:
        owners = {head.name: owner for head in page if (owner := owner_of(head.name)) is not None}
        if not owners:
            return []
        requests = {_uuid(owner) for owner in owners.values() if owner.request}
        uploads = {_uuid(owner) for owner in owners.values() if owner.file}
        async with snapshot(self._engine) as connection:
            rows = await connection.fetch(_OWNERS, list(requests), list(uploads), self._keep_s)
            now_s: float = await connection.fetchval(_NOW)
        known = {row["id"]: _Known(row["attempt"], row["over"]) for row in rows}
        return [name for name, owner in owners.items() if _is_doomed(owner, known.get(_uuid(owner)), now_s)]


def _is_doomed(owner: BlobOwner, known: _Known | None, now_s: float) -> bool:
    if known is None:
        return now_s - born_ms(_uuid(owner).hex) / 1000 > UNKNOWN_S
    if known.attempt is not None and owner.attempt is not None and owner.attempt != known.attempt:
        return True
    return known.over


def _uuid(owner: BlobOwner) -> UUID:
    return UUID(hex=(owner.request or owner.file).partition("_")[2])
