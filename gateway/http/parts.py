"""Bodies with media in the middle: files of the blob store are written into them piece by piece, never held whole."""

from base64 import b64encode
from collections.abc import AsyncIterator

import msgspec
from litestar.types import Send

from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from gateway.contract.events import MediaOutput
from gateway.errors import FaregateError, NotFound, Unavailable
from gateway.http.errors import Headers

GONE = "This file is no longer kept."


class Stored(msgspec.Struct, frozen=True):
    """A blob in the place where its base64 is to stand."""

    blob: str
    size_bytes: int


Part = bytes | Stored
Body = bytes | list[Part]


def base64_part(item: MediaOutput) -> Part:
    """Give the base64 of a file, now or when it is sent."""
    return Stored(item.blob, item.size_bytes) if item.blob else b64encode(item.data)


def size_of_parts(parts: list[Part]) -> int:
    """Count the bytes that parts come to."""
    return sum(-(-part.size_bytes // 3) * 4 if isinstance(part, Stored) else len(part) for part in parts)


async def send_parts(send: Send, headers: Headers, parts: list[Part], blobs: BlobStore) -> None:
    """Answer with a body made of parts. Raises NotFound or Unavailable while nothing has been sent."""
    pieces = written(parts, blobs)
    first = await anext(pieces, b"")
    headers.append((b"content-length", str(size_of_parts(parts)).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": first, "more_body": True})
    await send_pieces(send, pieces)


async def send_pieces(send: Send, pieces: AsyncIterator[bytes]) -> None:
    """Send the rest of a body."""
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def written(parts: list[Part], blobs: BlobStore) -> AsyncIterator[bytes]:
    """Give the bytes of parts; the first blob is opened before anything is given.

    Raises NotFound for a blob that is gone, Unavailable while the store is away.
    """
    first = next((part for part in parts if isinstance(part, Stored)), None)
    opened = await open_blob(first.blob, blobs) if first is not None else None
    for part in parts:
        if isinstance(part, bytes):
            yield part
            continue
        pieces = opened if part is first and opened is not None else await open_blob(part.blob, blobs)
        async for piece in _in_base64(pieces):
            yield piece


async def open_blob(name: str, blobs: BlobStore, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
    """Open a blob for reading. Raises NotFound, Unavailable."""
    try:
        return await blobs.read(name, start, end)
    except (BlobMissing, BlobsAway) as error:
        raise blob_error(error) from None


def blob_error(error: BlobMissing | BlobsAway) -> FaregateError:
    """Tell a caller what is wrong with a blob."""
    if isinstance(error, BlobMissing):
        return NotFound(GONE)
    return Unavailable("The store for media is away for the moment; try again.", retry_after_s=1.0)


async def _in_base64(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        piece = rest + piece
        whole = len(piece) // 3 * 3
        rest = piece[whole:]
        yield b64encode(piece[:whole])
    if rest:
        yield b64encode(rest)
