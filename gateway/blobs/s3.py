"""Blobs in an S3-compatible store, through obstore (extra `s3`).

Large ones go up in parts of 5 MB, one part at a time and eight blobs at a time: a process holds 40 MB of them at most.
A part that a killed process leaves behind is invisible; the bucket's own rule for incomplete uploads removes it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from gateway.blobs.names import check_name, check_prefix
from gateway.blobs.store import PAGE, BlobHead, BlobMissing, BlobPlace, BlobsAway, Source

if TYPE_CHECKING:
    from obstore import BytesStream, GetOptions, ObjectMeta
    from obstore.store import S3Store

PART_BYTES = 5 * 1024 * 1024
"""The least that S3 takes for a part but the last."""
MOST_WRITES = 8
PIECE_BYTES = 256 * 1024


class S3Blobs:
    """The blob store of several machines."""

    def __init__(self, place: BlobPlace) -> None:
        self._store = _open(place)
        self._writes = asyncio.Semaphore(MOST_WRITES)

    async def put(self, name: str, source: Source) -> int:
        """Write a blob, in parts where it is large."""
        check_name(name)
        given = source if isinstance(source, bytes) else _Counted(source)
        async with self._writes:
            with _telling():
                await self._store.put_async(name, given, chunk_size=PART_BYTES, max_concurrency=1)
        return len(given) if isinstance(given, bytes) else given.size_bytes

    async def get(self, name: str) -> bytes:
        """Read a whole blob."""
        check_name(name)
        with _telling():
            return bytes(await (await self._store.get_async(name)).bytes_async())

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Open a blob, and read it as it comes."""
        check_name(name)
        with _telling():
            options: GetOptions = {}
            if end is not None:
                options = {"range": (start, max(end, start + 1))}
            elif start:
                options = {"range": {"offset": start}}
            found = await self._store.get_async(name, options=options)
        return _pieces(found.stream(PIECE_BYTES), None if end is None else end - start)

    async def head(self, name: str) -> BlobHead:
        """Look at a blob."""
        check_name(name)
        with _telling():
            return _head(await self._store.head_async(name))

    async def delete(self, names: Sequence[str]) -> None:
        """Remove blobs, many in one call."""
        for name in names:
            check_name(name)
        if names:
            with _telling():
                await self._store.delete_async(list(names))

    async def page(self, prefix: str = "", after: str = "") -> list[BlobHead]:
        """List a page."""
        check_prefix(prefix)
        with _telling():
            listed = self._store.list(prefix or None, offset=after or None, chunk_size=PAGE)
            async for page in listed:
                return [_head(each) for each in page]
        return []

    async def tidy(self, older_than_s: float) -> int:
        """Remove nothing: the store itself drops incomplete uploads."""
        return 0


class _Counted:
    """Pieces on their way, counted."""

    def __init__(self, source: AsyncIterator[bytes] | BinaryIO) -> None:
        self._pieces = source if isinstance(source, AsyncIterator) else _of_file(source)
        self.size_bytes = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await anext(self._pieces)
        self.size_bytes += len(piece)
        return piece


async def _of_file(file: BinaryIO) -> AsyncIterator[bytes]:
    file.seek(0)
    while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
        yield piece


def _open(place: BlobPlace) -> "S3Store":
    from obstore.store import S3Store

    parts = urlsplit(place.url)
    given = {
        "endpoint": place.endpoint,
        "region": place.region,
        "access_key_id": place.key_id,
        "secret_access_key": place.secret,
    }
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config={name: value for name, value in given.items() if value},  # type: ignore[arg-type]
        client_options={
            "allow_http": place.endpoint.startswith("http://"),
            "connect_timeout": "5s",
            "read_timeout": "30s",
            "timeout": "1h",  # of a whole answer, which a slow reader may take in as slowly as it likes
        },
        retry_config={"max_retries": 3},
    )


@contextmanager
def _telling() -> Iterator[None]:
    """Tell the store's errors in the words of the port."""
    from obstore import exceptions

    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError) as error:
        raise BlobMissing("There is no such blob.") from error
    except (exceptions.BaseError, OSError) as error:
        raise BlobsAway("The blob store does not answer.") from error


async def _pieces(stream: "BytesStream", most: int | None) -> AsyncIterator[bytes]:
    """Give the pieces; none where none are wanted, for S3 knows no empty range."""
    with _telling():
        async for piece in stream:
            if most is not None and most <= 0:
                return
            yield bytes(piece)


def _head(meta: "ObjectMeta") -> BlobHead:
    etag = (meta["e_tag"] or "").strip('"')
    return BlobHead(meta["path"], meta["size"], etag, round(meta["last_modified"].timestamp() * 1e6))
