"""CSV and JSON, written by Postgres itself and handed on as they come: a row costs this process nothing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import asyncpg

AHEAD = 8
"""Pieces that may wait for a slow reader; then Postgres waits too."""


async def copied(
    connection: "asyncpg.Connection[asyncpg.Record]", statement: str, arguments: list[Any], **options: Any
) -> AsyncGenerator[bytes, None]:
    """Stream what COPY writes. Who stops reading stops the statement."""
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)

    async def copy() -> None:
        await connection.copy_from_query(statement, *arguments, output=pieces.put, **options)
        await pieces.put(None)

    copying = asyncio.create_task(copy())
    try:
        while True:
            taking = asyncio.create_task(pieces.get())
            await asyncio.wait({taking, copying}, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done() and copying.done():
                await copying  # what went wrong
            piece = await taking
            if piece is None:
                return
            yield bytes(piece)
    finally:
        copying.cancel()
        with suppress(asyncio.CancelledError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            await copying


CSV: dict[str, Any] = {"format": "csv", "header": True}
LINES: dict[str, Any] = {"format": "csv", "header": False, "delimiter": "\x02", "quote": "\x01", "escape": "\x01"}
"""One column of JSON on each line as it is: JSON has none of these characters in it, so nothing is quoted."""


async def as_array(lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Make one JSON array of JSON lines."""
    yield b"["
    held = b""
    try:
        async for piece in lines:
            piece = held + piece
            held = piece[-1:]
            yield piece[:-1].replace(b"\n", b",\n")
    finally:
        await lines.aclose()
    yield held.removesuffix(b"\n") + b"]\n"
