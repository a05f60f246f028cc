"""I10 in the blob store: kept files are there, and of the attempt that won."""

from collections.abc import Sequence
from importlib.resources import files
from uuid import UUID

import asyncpg

from gateway.blobs.names import owner_of
from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from gateway.contract.events import decode_output, media_of
from gateway.contract.ids import uuid_of
from gateway.ledger.books.figures import MOST_OFFENDERS, Check
from gateway.ledger.books.statements import SNAPSHOT_TIMEOUT_S

ROWS_AT_ONCE = 500

_SQL = files("gateway.ledger.books") / "sql"


async def check_media(connection: "asyncpg.Connection[asyncpg.Record]", blobs: BlobStore | None) -> Check:
    """Hold kept media against their attempts, and, where there is a blob store, against its files."""
    kept, found, offenders = 0, 0, []
    statement = (_SQL / "i10_media.sql").read_text("utf-8")
    note = "" if blobs else "the blob store was not looked at"
    try:
        async for row in connection.cursor(statement, prefetch=ROWS_AT_ONCE, timeout=SNAPSHOT_TIMEOUT_S):
            kept += 1
            if await _is_whole(row, blobs):
                found += 1
            else:
                offenders.append(row["id"])
        if blobs:
            note = await _strays(connection, blobs)
    except BlobsAway:
        note = "the blob store does not answer"
    return Check(
        invariant="I10",
        statement="Each kept media file is there, and of the attempt that won.",
        left_name="kept media",
        left=kept,
        right_name="of the winning attempt",
        right=found,
        difference=kept - found,
        verdict="broken" if offenders else "holds",
        broken=len(offenders),
        offenders=tuple(offenders[:MOST_OFFENDERS]),
        note=note,
    )


async def _is_whole(row: asyncpg.Record, blobs: BlobStore | None) -> bool:
    for item in media_of(decode_output(row["output"])):
        if not item.blob:
            continue  # its bytes stand in the row itself, which only the winner wrote
        owner = owner_of(item.blob)
        if owner is None or (owner.request, owner.attempt) != (row["id"], row["attempt"]):
            return False
        if blobs is not None and not row["expired"] and not await _is_there(blobs, item.blob):
            return False
    return True


async def _is_there(blobs: BlobStore, name: str) -> bool:
    try:
        await blobs.head(name)
    except BlobMissing:
        return False
    return True


async def _strays(connection: "asyncpg.Connection[asyncpg.Record]", blobs: BlobStore) -> str:
    """Count files of attempts that lost: a worker killed between storing and finishing leaves one."""
    strays, after = 0, ""
    while page := await blobs.page(after=after):
        after = page[-1].name
        strays += len(await stray_outputs(connection, [head.name for head in page]))
    return f"{strays} files of attempts that lost lie in the blob store until it is swept" if strays else ""


async def stray_outputs(connection: "asyncpg.Connection[asyncpg.Record]", names: Sequence[str]) -> list[str]:
    """Say which of these blobs are outputs of attempts that lost."""
    owners = {name: owner for name in names if (owner := owner_of(name)) and owner.attempt is not None}
    ids = [uuid_of(owner.request) for owner in owners.values()]
    rows = await connection.fetch((_SQL / "i10_winners.sql").read_text("utf-8"), ids, timeout=SNAPSHOT_TIMEOUT_S)
    winners: dict[UUID, int | None] = {row["id"]: row["attempt"] for row in rows}
    won = ((name, owner.attempt, winners.get(uuid_of(owner.request))) for name, owner in owners.items())
    return [name for name, attempt, winner in won if winner is not None and winner != attempt]
