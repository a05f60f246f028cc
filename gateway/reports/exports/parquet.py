"""Parquet: read by a cursor, written column by column in a thread, so that the event loop only carries."""

import asyncio
import queue
from collections.abc import AsyncGenerator
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, Any, cast

import asyncpg

from gateway.errors import Unavailable
from gateway.reports.exports.columns import Column

GROUP_ROWS = 20_000
"""In a row group of the file."""
BATCH_ROWS = 4_000
"""Read before they are handed to the writer, as Python's objects: four such lots are held at most."""
FETCH_ROWS = 1_000
AHEAD = 4
PIECE = 256 * 1024


def require_parquet() -> None:
    """Refuse where what writes Parquet is not installed. Raises Unavailable."""
    if find_spec("arro3") is None:
        raise Unavailable("Parquet needs the extra 'reports': pip install 'faregate[reports]'.", code="not_installed")


async def as_parquet(
    connection: "asyncpg.Connection[asyncpg.Record]", statement: str, arguments: list[Any], columns: tuple[Column, ...]
) -> AsyncGenerator[bytes, None]:
    """Stream rows as one Parquet file. Who stops reading stops the cursor."""
    loop, rows = asyncio.get_running_loop(), queue.Queue[list[asyncpg.Record] | None](2)
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(AHEAD)
    writing = asyncio.create_task(asyncio.to_thread(_write, columns, rows, _Sink(loop, pieces)))
    reading = asyncio.create_task(_read(connection, statement, arguments, rows))
    try:
        while (piece := await _next(pieces, reading, writing)) is not None:
            yield piece
    finally:
        reading.cancel()
        _stop(rows)
        while not writing.done():
            with suppress(asyncio.QueueEmpty):
                pieces.get_nowait()
            await asyncio.sleep(0.005)
        with suppress(asyncio.CancelledError, Exception):
            await reading
        with suppress(Exception):  # the reader is told of it by `_next`; here the caller has left
            await writing


async def _next(pieces: "asyncio.Queue[bytes | None]", *work: "asyncio.Task[None]") -> bytes | None:
    """Wait for the next piece, or for what goes wrong with the work."""
    taking = asyncio.create_task(pieces.get())
    while not taking.done():
        await asyncio.wait({taking, *(task for task in work if not task.done())}, return_when=asyncio.FIRST_COMPLETED)
        for task in work:
            if task.done() and not task.cancelled() and (failed := task.exception()) is not None:
                taking.cancel()
                raise failed
    return await taking


async def _read(
    connection: "asyncpg.Connection[asyncpg.Record]",
    statement: str,
    arguments: list[Any],
    rows: "queue.Queue[list[asyncpg.Record] | None]",
) -> None:
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        cursor = await connection.cursor(statement, *arguments)
        while True:
            group: list[asyncpg.Record] = []
            while len(group) < BATCH_ROWS and (found := await cursor.fetch(FETCH_ROWS)):
                group += found
            if group:
                await asyncio.to_thread(rows.put, group)
            if len(group) < BATCH_ROWS:
                await asyncio.to_thread(rows.put, None)
                return


def _stop(rows: "queue.Queue[list[asyncpg.Record] | None]") -> None:
    with suppress(queue.Empty):
        while True:
            rows.get_nowait()
    with suppress(queue.Full):
        rows.put_nowait(None)


class _Sink:
    """Where the writer's bytes go: to the event loop, which may be slower."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pieces: "asyncio.Queue[bytes | None]") -> None:
        self._loop = loop
        self._pieces = pieces
        self._at = 0
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        """Take bytes; waits while the reader is behind."""
        self._held += data
        self._at += len(data)
        if len(self._held) >= PIECE:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Hand on what was taken."""
        if self._held:
            self._put(bytes(self._held))
            self._held.clear()

    def end(self) -> None:
        """Hand on what is left, and say that it was all."""
        self.flush()
        self._put(None)

    def seek(self, _offset: int, _whence: int = 0) -> int:
        """Say where we are: the writer asks for it, and only goes forward."""
        return self._at

    def tell(self) -> int:
        """Say how much was written."""
        return self._at

    def _put(self, piece: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(self._pieces.put(piece), self._loop).result()


def _write(columns: tuple[Column, ...], rows: "queue.Queue[list[asyncpg.Record] | None]", sink: _Sink) -> None:
    """Write the groups of rows until there are no more."""
    from gateway.reports.exports.arrow_file import write_groups  # here, because it takes 9 MB

    write_groups(columns, iter(rows.get, None), cast(IO[bytes], sink), GROUP_ROWS)
    sink.end()
