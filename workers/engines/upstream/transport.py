"""How upstreams are called for little: HTTP/1.1 over asyncio, parsed by httptools, with connections that are kept.

httpx's own transport (httpcore, h11, anyio) takes most of a millisecond of processor for each call, and its client as
much again: see docs/decisions/0007. This one speaks HTTP/1.1 only, follows nothing, decodes nothing, and takes
no proxy from the environment.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec

from workers.engines.upstream.connection import Connection

IDLE_S = 15.0
"""How long a connection is kept for the next call: shorter than servers do, so that few are stale."""
MOST_IDLE = 256
GRACE_S = 0.25
"""How long the end of a stream may take whose last event has come, before its connection is closed."""

Origin = tuple[str, str, int]


class Limits(msgspec.Struct, frozen=True):
    """How long a connection and each piece of an answer may take, and whether a kept connection will not do."""

    connect_s: float
    read_s: float
    fresh: bool = False


class KeptBody(httpx.AsyncByteStream):
    """The body of an answer. Closing it early closes the connection, which also tells the upstream to stop."""

    def __init__(self, transport: "KeptTransport", origin: Origin, connection: Connection, timeout_s: float) -> None:
        self._transport = transport
        self._origin = origin
        self._connection = connection
        self._timeout_s = timeout_s
        self.over = False
        """Whether all that is wanted has been read, though the end is still to come."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the body as it comes. Raises httpx's TransportErrors."""
        connection = self._connection
        while pieces := await connection.pieces(self._timeout_s):
            yield pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def aclose(self) -> None:
        """Keep the connection where the answer was read to its end, else close it."""
        connection = self._connection
        if self.over and connection.open and not connection.complete:
            asyncio.get_running_loop().call_later(GRACE_S, self._transport.put_back, self._origin, connection)
        else:
            self._transport.put_back(self._origin, connection)


class KeptTransport:
    """Connections to one or several upstreams, kept between calls. Raises httpx's own TransportErrors."""

    def __init__(self) -> None:
        self._idle: dict[Origin, list[Connection]] = {}
        self._all: set[Connection] = set()
        self._tls: ssl.SSLContext | None = None

    async def exchange(self, origin: Origin, wire: bytes, limits: Limits) -> Connection:
        """Send the bytes of a request, and give the connection on which its answer has begun.

        Whoever gets it reads the answer, and puts it back or closes it.
        """
        connection = None if limits.fresh else self._take(origin)
        kept = connection is not None
        while True:
            if connection is None:
                connection = await self._connect(origin, limits.connect_s)
                kept = False
            try:
                connection.write(wire)
                await connection.head(limits.read_s)
                return connection
            except httpx.RemoteProtocolError:
                stale = kept and not connection.heard
                connection.close()
                if not stale:
                    raise
                connection = None  # it was closed while it lay idle, and nobody has read the request
            except BaseException:
                connection.close()
                raise

    def _take(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.open and time.monotonic() - connection.idle_since < IDLE_S:
                return connection
            connection.close()
        return None

    def put_back(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection whose exchange is over; close any other."""
        idle = self._idle.setdefault(origin, [])
        if connection.open and connection.complete and connection.reusable and len(idle) < MOST_IDLE:
            connection.idle_since = time.monotonic()
            idle.append(connection)
        elif connection.open:
            connection.close()

    async def _connect(self, origin: Origin, timeout_s: float) -> Connection:
        scheme, host, port = origin
        tls: dict[str, Any] = {}
        if scheme == "https":
            tls = {"ssl": self._context(), "server_hostname": host, "ssl_handshake_timeout": timeout_s}
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port, **tls)
        except TimeoutError:
            raise httpx.ConnectTimeout("no connection in time") from None
        except (OSError, ssl.SSLError) as error:
            raise httpx.ConnectError(type(error).__name__) from None
        self._all = {each for each in self._all if each.open} if len(self._all) > 2 * MOST_IDLE else self._all
        self._all.add(connection)
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in self._all:
            if connection.open:
                connection.close()
        self._all.clear()
        self._idle.clear()
        await asyncio.sleep(0)


def origin_of(url: httpx.URL) -> Origin:
    """Name the server of an address."""
    return (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))


def encoded(request: httpx.Request) -> bytes:
    """Write a request down. httpx has refused line breaks in names and values, and set `Host` and the length."""
    lines = [b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if b"\n" in value or b"\r" in value or b"\0" in value:
            raise httpx.LocalProtocolError("a header with a line break")
        lines.append(b"%b: %b\r\n" % (name, value))
    lines.append(b"\r\n")
    lines.append(request.content)
    return b"".join(lines)
