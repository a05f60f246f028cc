"""One HTTP/1.1 connection to an upstream, parsed by httptools: an exchange at a time, its body as it comes."""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools
import httpx

from workers.engine import EngineError, RefusedInput

MOST_HEAD_BYTES = 64 * 1024
HIGH_WATER = 512 * 1024
"""Bytes that wait to be read before the upstream is asked to pause."""


Sink = Callable[[bytes], bool]
"""Takes a piece of a body in the very tick in which it came, and says whether it wants no more."""


class TooLong(httpx.RemoteProtocolError):
    """An answer is longer than its reader allows."""


class Connection(asyncio.Protocol):
    """A connection, and the answer that it reads now.

    A body is read in one of three ways: as a whole, with one wake-up for all of it; by a sink, with none; or piece by
    piece, as fast as its reader comes for more.
    """

    __slots__ = (
        "_chunks",
        "_failure",
        "_head_bytes",
        "_heard_s",
        "_loop",
        "_most_bytes",
        "_parser",
        "_paused",
        "_sink",
        "_sized",
        "_transport",
        "_waiter",
        "_waiting",
        "complete",
        "heard",
        "idle_since",
        "open",
        "raw_headers",
        "ready",
        "reusable",
    )

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self.open = False
        self.idle_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._waiting = 0
        self._head_bytes = 0
        self._paused = False
        self._sized = False
        self._most_bytes = 0
        self._sink: Sink | None = None
        self._failure: Exception | None = None
        self.raw_headers: list[tuple[bytes, bytes]] = []
        self.ready = self.complete = self.heard = self.reusable = False

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self.open = True

    def data_received(self, data: bytes) -> None:
        """Parse what came. What comes after the end of an answer ends the connection."""
        if self.complete:
            return self.close()
        self.heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self.complete:
                self._fail(httpx.RemoteProtocolError("an answer that is no HTTP"))
            return None
        if not self.ready:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._fail(httpx.RemoteProtocolError("the headers of an answer are too long"))
        if self._sink is not None:
            self._hand_out(self._sink)
        elif self._most_bytes:
            self._gather()
        else:
            if self._waiting > HIGH_WATER and not self._paused:
                self._paused = True
                self._transport.pause_reading()
            self._wake()
        return None

    def _gather(self) -> None:
        """Let a whole answer come, up to its limit."""
        if self._waiting > self._most_bytes:
            self._fail(TooLong("the answer is too long"))
        elif self.complete:
            self._wake()

    def _hand_out(self, sink: Sink) -> None:
        """Give the sink what came; what it raises is the end of this answer."""
        self._heard_s = self._loop.time()
        pieces, self._chunks, self._waiting = self._chunks, [], 0
        try:
            for piece in pieces:
                if sink(piece):
                    self._sink = None
                    return self._wake()
        except (EngineError, RefusedInput) as error:  # whoever waits for the end raises it again
            self._sink = None
            return self._fail(error)
        return self._wake() if self.complete else None

    def connection_lost(self, error: Exception | None) -> None:
        """Note the end of the connection, which ends a body of unknown length."""
        self.open = False
        if self.ready and not self.complete and not self._sized and error is None:
            self.complete = True
        elif not self.complete:
            self._failure = self._failure or httpx.RemoteProtocolError("the connection was closed")
        self._wake()

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Begin an answer; a second one after an interim one (1xx) begins anew."""
        self.raw_headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        lowered = name.lower()
        if lowered in (b"content-length", b"transfer-encoding"):
            self._sized = True
        self.raw_headers.append((lowered, value))

    def on_headers_complete(self) -> None:
        """Note that status and headers are here."""
        if self._parser.get_status_code() >= 200:
            self.ready = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._chunks.append(body)
        self._waiting += len(body)

    def on_message_complete(self) -> None:
        """Note the end of the answer."""
        if self.ready:
            self.complete = True
            self.reusable = self._parser.should_keep_alive()

    # What the transport calls.

    @property
    def status(self) -> int:
        """The status of the answer."""
        return int(self._parser.get_status_code())

    def write(self, data: bytes) -> None:
        """Send a request."""
        self._reset()
        self.idle_since = 0.0
        self._transport.write(data)

    async def head(self, timeout_s: float) -> None:
        """Wait for status and headers. Raises httpx.ReadTimeout or httpx.RemoteProtocolError."""
        while not self.ready:
            await self._more(timeout_s)

    async def pieces(self, timeout_s: float) -> list[bytes]:
        """Wait for more of the body; nothing where it has ended. Raises as `head` does."""
        while not self._chunks:
            if self.complete:
                return []
            await self._more(timeout_s)
        found, self._chunks, self._waiting = self._chunks, [], 0
        self._resume()
        return found

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    async def whole(self, timeout_s: float, most_bytes: int) -> bytes:
        """Wait for the whole answer. Raises as `head` does, and TooLong."""
        self._most_bytes = most_bytes
        self._resume()
        self._gather()
        if not self.complete or self._failure is not None:
            await self._more(timeout_s)
        chunks = self._chunks
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def drain(self, sink: Sink, timeout_s: float) -> None:
        """Let a sink have the body, until it has ended or the sink has enough.

        Raises what the sink raises, and as `head` does; `timeout_s` is for the time between two pieces.
        """
        self._sink = sink
        self._resume()
        self._hand_out(sink)
        while self._sink is not None and not self.complete:
            self._check()
            if not self.open:
                raise httpx.RemoteProtocolError("the connection was closed")
            silent_s = self._loop.time() - self._heard_s
            if silent_s >= timeout_s:
                raise httpx.ReadTimeout("nothing came in time")
            waiter = self._waiter = self._loop.create_future()
            timer = self._loop.call_later(timeout_s - silent_s, self._wake)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        self._check()

    async def _more(self, timeout_s: float) -> None:
        self._check()
        if not self.open:
            raise httpx.RemoteProtocolError("the connection was closed")
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(timeout_s, self._late)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
        if not self._chunks or self._most_bytes:
            self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _late(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(httpx.ReadTimeout("nothing came in time"))

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Close the connection at once."""
        self.open = False
        self._transport.abort()
