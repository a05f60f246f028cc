"""What comes in goes through a file without a name: little stays in memory, and nothing after a killed process."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO, cast

from gateway.errors import TooLarge

WRITE_BYTES = 256 * 1024


class MediaTooLarge(TooLarge):
    """A file is over the limit of its kind."""

    default_code = "media_too_large"


@asynccontextmanager
async def spooled(pieces: AsyncIterator[bytes], most_bytes: int, param: str | None) -> AsyncIterator[BinaryIO]:
    """Collect pieces in a file for the length of a block. Raises MediaTooLarge as soon as they are too many."""
    with cast(BinaryIO, await asyncio.to_thread(tempfile.TemporaryFile, prefix="faregate-")) as file:
        size, waiting = 0, bytearray()
        async for piece in pieces:
            size += len(piece)
            if size > most_bytes:
                raise MediaTooLarge(f"This file may have at most {most_bytes} bytes.", param=param)
            waiting += piece
            if len(waiting) >= WRITE_BYTES:
                await asyncio.to_thread(file.write, waiting)
                waiting = bytearray()
        if waiting:
            await asyncio.to_thread(file.write, waiting)
        file.flush()
        yield file
