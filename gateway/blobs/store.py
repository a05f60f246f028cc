"""The port of the blob store, and what every backend of it keeps to (`tests/conformance/test_blobs.py`).

A blob is there whole or not at all, under a name that `names.check_name` allows. Nothing but `get` holds a large one in
memory.
"""

from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO, Protocol, runtime_checkable

import msgspec

Source = bytes | BinaryIO | AsyncIterator[bytes]
"""What a blob is made of: its bytes, an open file, read from its beginning, or pieces as they come."""

PAGE = 1000
"""The most names that one look at a list answers."""


class BlobError(Exception):
    """What goes wrong in a blob store. Its text names neither folder nor address."""


class BlobMissing(BlobError):
    """There is no such blob, or no longer."""


class BlobsAway(BlobError):
    """The store does not answer, is full, or refuses; the same call may succeed later."""


class BlobPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where blobs lie: a folder, or a bucket and how it is entered."""

    url: str
    """A path, `file:///path`, `s3://bucket` or `s3://bucket/prefix`."""
    endpoint: str = ""
    """Where the bucket's store answers, if it is not AWS."""
    region: str = ""
    key_id: str = ""
    """Without one, obstore looks for credentials where AWS's own tools do."""
    secret: str = ""


class BlobHead(msgspec.Struct, frozen=True):
    """What is known about a blob without reading it."""

    name: str
    size_bytes: int
    etag: str
    """Changes with the blob; without quotation marks."""
    written_us: int
    """Unix microseconds, by the store's own clock."""


@runtime_checkable
class BlobStore(Protocol):
    """Where blobs lie. Every method raises BlobsAway while the store cannot be reached, ValueError for a bad name."""

    async def put(self, name: str, source: Source) -> int:
        """Write a blob whole, or not at all; what was there under the name is replaced. Answers its size in bytes."""
        ...

    async def get(self, name: str) -> bytes:
        """Read a whole blob into memory. Raises BlobMissing."""
        ...

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Open a blob and answer its bytes from `start` to before `end`, in pieces. Raises BlobMissing at once."""
        ...

    async def head(self, name: str) -> BlobHead:
        """Look at a blob. Raises BlobMissing."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Remove blobs; one that is not there is no error."""
        ...

    async def page(self, prefix: str = "", after: str = "") -> list[BlobHead]:
        """List blobs below a folder whose names come after `after`, in the order of names: at most `PAGE` of them.

        `prefix` is empty or ends with a slash.
        """
        ...

    async def tidy(self, older_than_s: float) -> int:
        """Remove what writes that broke off have left behind for this long. Answers how many."""
        ...
