"""One socket to Redis: what is written, what is read, and the word that it is lost."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any, Protocol, cast

import hiredis

from gateway.queues.address import Address
from gateway.queues.port import QueueUnavailable

CONNECT_S = 5.0
"""How long connecting and greeting may take."""

Part = str | int | float | bytes
Command = tuple[Part, ...]


def pack(command: Command) -> bytes:
    """Encode a command as Redis reads it (RESP)."""
    return cast(bytes, hiredis.pack_command(command))  # type: ignore[arg-type]  # its stub means tuples of any length


class Receiver(Protocol):
    """Whoever owns a connection."""

    def received(self, reply: Any) -> None:
        """Take one reply; an error reply is a hiredis.ReplyError."""
        ...

    def writable(self) -> None:
        """Hear that a full socket takes bytes again."""
        ...

    def lost(self) -> None:
        """Hear, once, that the connection is gone."""
        ...


class Connection(asyncio.Protocol):
    """A connected socket with a reader of replies. `paused` while the other side does not read."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._reader = hiredis.Reader()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._greeting: asyncio.Future[None] | None = None
        self._greetings_left = 0
        self.paused = False
        self.heard_s = self._loop.time()
        """The loop's time when bytes came last."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand each whole reply to the owner."""
        self.heard_s = self._loop.time()
        reader = self._reader
        try:
            reader.feed(data)
            take = self._greeted if self._greeting is not None else self._receiver.received
            reply = reader.gets()
            while reply is not False:
                take(reply)
                reply = reader.gets()
        except hiredis.ProtocolError:
            self.abort()

    def pause_writing(self) -> None:
        """Stop writing: the socket is full."""
        self.paused = True

    def resume_writing(self) -> None:
        """Go on writing."""
        self.paused = False
        self._receiver.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the owner, or whoever waits for the greeting."""
        self._transport = None
        if self._greeting is None:
            self._receiver.lost()
        elif not self._greeting.done():
            self._greeting.set_exception(QueueUnavailable("Redis closed the connection"))

    def write(self, data: bytes) -> None:
        """Write packed commands."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Close once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    async def greet(self, commands: Sequence[Command]) -> None:
        """Send the first commands and wait until all are answered. Raises QueueUnavailable when one is refused."""
        if not commands:
            return
        self._greeting = self._loop.create_future()
        self._greetings_left = len(commands)
        self.write(b"".join(pack(command) for command in commands))
        await self._greeting
        self._greeting = None

    def _greeted(self, reply: Any) -> None:
        assert self._greeting is not None
        self._greetings_left -= 1
        if self._greeting.done():
            return
        if isinstance(reply, hiredis.ReplyError):
            self._greeting.set_exception(QueueUnavailable(f"Redis refused the connection: {reply}"))
        elif self._greetings_left == 0:
            self._greeting.set_result(None)


async def connect(address: Address, receiver: Receiver, commands: Sequence[Command] = ()) -> Connection:
    """Connect, log in, choose the database, and run `commands`. Raises QueueUnavailable."""
    loop = asyncio.get_running_loop()
    connection = Connection(receiver)
    first: list[Command] = []
    if address.password:
        first.append(("AUTH", address.username or "default", address.password))
    if address.database:
        first.append(("SELECT", address.database))
    tls = ssl.create_default_context() if address.tls else None
    try:
        async with asyncio.timeout(CONNECT_S):
            if address.path:
                await loop.create_unix_connection(lambda: connection, address.path)
            else:
                await loop.create_connection(lambda: connection, address.host, address.port, ssl=tls)
            await connection.greet([*first, *commands])
    except (OSError, TimeoutError) as error:
        connection.abort()
        raise QueueUnavailable(f"Redis at {address} does not answer: {type(error).__name__}") from error
    except BaseException:
        connection.abort()
        raise
    return connection
