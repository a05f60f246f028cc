"""What an upstream answers: whole, or read as it comes."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from workers.engines.upstream.connection import Connection
from workers.engines.upstream.failures import unreadable
from workers.engines.upstream.sse import ServerEvent, SseReader
from workers.engines.upstream.transport import KeptBody

MOST_ERROR_BYTES = 64 * 1024


class Answer(msgspec.Struct, frozen=True):
    """A whole answer of an upstream. The names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Read the body as JSON. Raises UpstreamFailed where it is none."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise unreadable(f"HTTP {self.status}: no JSON in {len(self.body)} bytes") from None

    def object(self) -> dict[str, Any]:
        """Read the body as a JSON object. Raises UpstreamFailed where it is none."""
        found = self.json()
        if not isinstance(found, dict):
            raise unreadable(f"HTTP {self.status}: the JSON is no object")
        return found


class Opened:
    """An answer that is read as it comes: by a sink, in the tick in which it came, or piece by piece."""

    def __init__(self, body: KeptBody, connection: Connection, timeout_s: float, limit_bytes: int) -> None:
        self.status = connection.status
        self.headers: Mapping[str, str] = plain_headers(connection)
        self._body = body
        self._connection = connection
        self._timeout_s = timeout_s
        self._limit_bytes = limit_bytes

    def over(self) -> None:
        """Say that nothing more is wanted, and that the upstream is about to end: its connection may be kept."""
        self._body.over = True

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes. Raises UpstreamFailed where it breaks off, or is too large."""
        total = 0
        async for piece in self._body:
            total += len(piece)
            if total > self._limit_bytes:
                raise unreadable(f"an answer of more than {self._limit_bytes} bytes")
            yield piece

    async def events(self) -> AsyncGenerator[ServerEvent]:
        """Read the body as server-sent events. Raises UpstreamFailed where one is too long."""
        reader = SseReader()
        async for piece in self.pieces():
            for event in reader.feed(piece):
                yield event

    async def each_event(self, take: Callable[[ServerEvent], bool]) -> None:
        """Give each server-sent event to `take` in the tick in which it came, until it says that it was the last.

        No task is woken for it. Raises what `take` raises, and
        UpstreamFailed where the body breaks off, or is too large.
        """
        reader, total, limit = SseReader(), 0, self._limit_bytes

        def sink(piece: bytes) -> bool:
            nonlocal total
            total += len(piece)
            if total > limit:
                raise unreadable(f"an answer of more than {limit} bytes")
            return any(take(event) for event in reader.feed(piece))

        await self._connection.drain(sink, self._timeout_s)


def plain_headers(connection: Connection) -> Mapping[str, str]:
    """Give the headers of an answer as text; their names are in small letters."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in connection.raw_headers}


async def beginning(body: KeptBody) -> bytes:
    """Read what an answer says that is a failure; what is too long of it is not read."""
    pieces: list[bytes] = []
    total = 0
    async for piece in body:
        pieces.append(piece)
        total += len(piece)
        if total > MOST_ERROR_BYTES:
            break
    return b"".join(pieces)
