"""I10 in the blob folder: a kept file is of the attempt that won."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from uuid import UUID

import asyncpg
import msgspec

from gateway.contract.events import MediaOutput, decode_output
from gateway.contract.ids import uuid_of
from gateway.ledger.books.figures import MOST_OFFENDERS, Check
from gateway.ledger.books.statements import SNAPSHOT_TIMEOUT_S

ROWS_AT_ONCE = 500

_SQL = files("gateway.ledger.books") / "sql"
_BLOB = re.compile(r"(req_[0-9a-f]{32})-(\d{1,4})\.[a-z0-9]{1,8}")


class BlobFile(msgspec.Struct, frozen=True):
    """A file that an attempt wrote."""

    path: Path
    request_id: str
    attempt: int


async def check_media(connection: "asyncpg.Connection[asyncpg.Record]", blob_dir: Path | None) -> Check:
    """Hold kept media against their attempts, and, where there is a blob folder, against its files."""
    kept, found, offenders = 0, 0, []
    statement = (_SQL / "i10_media.sql").read_text("utf-8")
    async for row in connection.cursor(statement, prefetch=ROWS_AT_ONCE, timeout=SNAPSHOT_TIMEOUT_S):
        kept += 1
        if await asyncio.to_thread(_is_whole, row, blob_dir):
            found += 1
        else:
            offenders.append(row["id"])
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
        note=await _strays(connection, blob_dir) if blob_dir else "the blob folder was not looked at",
    )


def _is_whole(row: asyncpg.Record, blob_dir: Path | None) -> bool:
    output = decode_output(row["output"])
    if not isinstance(output, MediaOutput) or not output.blob:
        return True  # its bytes stand in the row itself, which only the winner wrote
    name = _BLOB.fullmatch(output.blob.rpartition("/")[2])
    if name is None or (name[1], int(name[2])) != (row["id"], row["attempt"]):
        return False
    return row["expired"] or blob_dir is None or (blob_dir / output.blob).is_file()


async def _strays(connection: "asyncpg.Connection[asyncpg.Record]", blob_dir: Path) -> str:
    """Count files of attempts that lost: a worker killed between storing and finishing leaves one."""
    pages = blob_files(blob_dir)
    strays = 0
    while page := await asyncio.to_thread(next, pages, None):
        strays += len(await _losers(connection, page))
    return (
        f"{strays} files of attempts that lost lie in the blob folder, where nothing refers to them" if strays else ""
    )


async def _losers(connection: "asyncpg.Connection[asyncpg.Record]", page: Sequence[BlobFile]) -> list[BlobFile]:
    ids = [uuid_of(file.request_id) for file in page]
    rows = await connection.fetch((_SQL / "i10_winners.sql").read_text("utf-8"), ids, timeout=SNAPSHOT_TIMEOUT_S)
    winners: dict[UUID, int | None] = {row["id"]: row["attempt"] for row in rows}
    known = ((file, winners.get(uuid_of(file.request_id))) for file in page)
    return [file for file, attempt in known if attempt is not None and attempt != file.attempt]


def blob_files(blob_dir: Path) -> Iterator[list[BlobFile]]:
    """Walk the blob folder, a page of files at a time."""
    page: list[BlobFile] = []
    for path in blob_dir.glob("*/*/*/*"):
        name = _BLOB.fullmatch(path.name)
        if name is not None:
            page.append(BlobFile(path, name[1], int(name[2])))
        if len(page) == ROWS_AT_ONCE:
            yield page
            page = []
    if page:
        yield page
