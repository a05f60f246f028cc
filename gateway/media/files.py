"""Files that callers upload, to name them in calls by their ids. The owner stands in every WHERE."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any, BinaryIO, Literal
from uuid import UUID

import msgspec
from sqlalchemy import Select, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.blobs.names import UNKNOWN, upload_name
from gateway.blobs.store import BlobsAway
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import Media
from gateway.db.accounts import account
from gateway.db.files import file
from gateway.errors import Conflict, InvalidRequest, NotFound, Unavailable
from gateway.ledger.transaction import transaction
from gateway.media.inlet import Inlet
from gateway.media.limits import Kind
from gateway.media.probe.pool import Facts
from gateway.media.spool import spooled

FILE_PREFIX = "file_"
Order = Literal["asc", "desc"]


def new_file_id() -> str:
    """Make the id of a file that is to come."""
    return FILE_PREFIX + new_request_id()[4:]


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file as its owner sees it."""

    id: str
    filename: str
    purpose: str
    size_bytes: int
    media_type: str
    created_s: int
    expires_s: int
    blob: str


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """What is told about a file that is being uploaded."""

    filename: str
    purpose: str
    keep_s: int | None = None
    """How long the caller wants it kept; never longer than the account keeps media."""


class Files:
    """Keeps uploaded files. Every method raises Unavailable while Postgres or the store is away."""

    def __init__(self, engine: AsyncEngine, inlet: Inlet, *, keep_s: int, most_bytes: int) -> None:
        self._engine = engine
        self._inlet = inlet
        self._keep_s = keep_s
        self._most_bytes = most_bytes

    async def receive(self, pieces: AsyncIterator[bytes], file_id: str = "") -> "Received":
        """Take the bytes of a file in and look at them. Raises MediaTooLarge, Unprocessable.

        `file_id` is one that `new_file_id` gave before the file came.
        """
        file_id = file_id or new_file_id()
        async with spooled(pieces, self._most_bytes, "file") as spool:
            facts = await self._facts(spool)
            name = upload_name(file_id, facts.media_type)
            size = os.fstat(spool.fileno()).st_size
            try:
                await self._inlet.store.put(name, spool)
            except BlobsAway:
                raise _away() from None
        return Received(file_id, name, size, facts)

    async def receive_part(self, pieces: AsyncIterator[bytes]) -> str:
        """Take in the bytes of a part of a file; answers where they lie. Raises MediaTooLarge."""
        name = upload_name(new_file_id(), UNKNOWN)
        async with spooled(pieces, self._most_bytes, "file") as spool:
            try:
                await self._inlet.store.put(name, spool)
            except BlobsAway:
                raise _away() from None
        return name

    async def drop_parts(self, names: Sequence[str]) -> None:
        """Remove parts that were joined."""
        for name in names:
            await self._remove(name)

    async def _facts(self, spool: BinaryIO) -> Facts:
        """Look at a file that need not be media: one that is none that is known is kept as bytes."""
        try:
            return await self._inlet.look(spool, None, "file")
        except InvalidRequest:
            return Facts(media_type=UNKNOWN)

    async def keep(self, account_id: int, received: "Received", upload: Upload) -> StoredFile:
        """Make a received file one of the account's. Raises Conflict where its id has one already."""
        own_s = select(account.c.keep_media_s).where(account.c.id == account_id).scalar_subquery()
        keep_s: Any = func.coalesce(own_s, self._keep_s)
        if upload.keep_s is not None:
            keep_s = func.least(keep_s, upload.keep_s)
        made = insert(file).values(
            id=_uuid(received.id),
            account_id=account_id,
            size_bytes=received.size_bytes,
            expires_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, keep_s),
            blob=received.blob,
            filename=upload.filename,
            purpose=upload.purpose,
            **msgspec.structs.asdict(received.facts),
        )
        async with transaction(self._engine) as connection:
            row = (await connection.execute(made.on_conflict_do_nothing().returning(file))).one_or_none()
        if row is None:
            raise Conflict("This file has been uploaded already.", code="file_exists")
        return _stored(row)

    async def drop(self, received: "Received") -> None:
        """Remove a received file that is not to be kept after all."""
        await self._remove(received.blob)

    async def page(
        self, account_id: int, *, after: str | None, limit: int, order: Order, purpose: str | None
    ) -> Sequence[StoredFile]:
        """List the account's files by age, from the one after `after`. Raises InvalidRequest for an id that is none."""
        query = _living(account_id)
        if purpose is not None:
            query = query.where(file.c.purpose == purpose)
        if after is not None:
            after_id = _id(after)
            if after_id is None:
                raise InvalidRequest("This is no id of a file.", param="after")
            query = query.where(file.c.id > after_id if order == "asc" else file.c.id < after_id)
        query = query.order_by(file.c.id if order == "asc" else file.c.id.desc()).limit(limit)
        async with transaction(self._engine) as connection:
            return [_stored(row) for row in await connection.execute(query)]

    async def show(self, account_id: int, file_id: str) -> StoredFile:
        """Show one file. Raises NotFound, for those of others too."""
        return _stored(await self._row(account_id, file_id, None))

    async def delete(self, account_id: int, file_id: str) -> None:
        """Remove a file: its row, then its blob. Raises NotFound."""
        gone = delete(file).where(file.c.id == _id(file_id), file.c.account_id == account_id).returning(file.c.blob)
        async with transaction(self._engine) as connection:
            blob = (await connection.execute(gone)).scalar_one_or_none()
        if blob is None:
            raise _missing(None)
        await self._remove(blob)

    async def media(self, account_id: int, file_id: str, kind: Kind, param: str) -> Media:
        """Give a file as the media of a call. Raises NotFound, or InvalidRequest where it is of another kind."""
        row = await self._row(account_id, file_id, param)
        if not _fits(row.media_type, kind):
            raise InvalidRequest(
                f"This file is {row.media_type}, where {kind} is wanted.", code="media_wrong_kind", param=param
            )
        return Media(
            blob=row.blob,
            media_type=row.media_type,
            size_bytes=row.size_bytes,
            width=row.width,
            height=row.height,
            duration_ms=row.duration_ms,
            frames=row.frames,
        )

    async def _row(self, account_id: int, file_id: str, param: str | None) -> Any:
        async with transaction(self._engine) as connection:
            found = await connection.execute(_living(account_id).where(file.c.id == _id(file_id)))
            row = found.one_or_none()
        if row is None:
            raise _missing(param)
        return row

    async def _remove(self, blob: str) -> None:
        try:
            await asyncio.shield(self._inlet.store.delete([blob]))
        except BlobsAway:
            return  # its row is gone: the sweeper finds it


class Received(msgspec.Struct, frozen=True):
    """A file whose bytes lie in the store, and which is nobody's yet."""

    id: str
    blob: str
    size_bytes: int
    facts: Facts


def _living(account_id: int) -> Select[Any]:
    return select(file).where(file.c.account_id == account_id, file.c.expires_at > func.now())


def _fits(media_type: str, kind: Kind) -> bool:
    """Say whether a type is of a kind; the sound of a video is looked for by whoever plays it."""
    return media_type.startswith(f"{kind}/") or (kind == "audio" and media_type.startswith("video/"))


def _id(file_id: str) -> UUID | None:
    hexadecimal = file_id.removeprefix(FILE_PREFIX)
    if len(file_id) != len(FILE_PREFIX) + 32 or not set(hexadecimal) <= set("0123456789abcdef"):
        return None
    return UUID(hex=hexadecimal)


def _uuid(file_id: str) -> UUID:
    return UUID(hex=file_id.removeprefix(FILE_PREFIX))


def _stored(row: Any) -> StoredFile:
    return StoredFile(
        id=FILE_PREFIX + row.id.hex,
        filename=row.filename,
        purpose=row.purpose,
        size_bytes=row.size_bytes,
        media_type=row.media_type,
        created_s=int(row.created_at.timestamp()),
        expires_s=int(row.expires_at.timestamp()),
        blob=row.blob,
    )


def _missing(param: str | None) -> NotFound:
    return NotFound("There is no such file.", code="file_not_found", param=param)


def _away() -> Unavailable:
    return Unavailable("The store for media is away for the moment; try again.", retry_after_s=1.0)
