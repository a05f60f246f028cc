"""The connection that listens to channels, and goes on listening after a loss."""

import asyncio
from collections.abc import Callable
from typing import Any

import hiredis
import structlog

from gateway.queues.address import parse_address
from gateway.queues.connection import Connection, connect, pack
from gateway.queues.port import QueueUnavailable

log = structlog.get_logger()

PING_S = 5.0
"""Between two signs of life; three without an answer and the connection counts as lost."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
SUBSCRIBE_S = 10.0
"""How long a first subscription may take."""

Listener = tuple[Callable[[bytes], None], Callable[[], None]]


class Subscriber:
    """Listens to any number of channels on one connection, from the first `subscribe` to `close`."""

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._listeners: dict[bytes, list[Listener]] = {}
        self._confirmed: set[bytes] = set()
        self._waiting: dict[bytes, list[asyncio.Future[None]]] = {}
        self._connection: Connection | None = None
        self._loss: asyncio.Event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._gap_pending = False

    async def subscribe(self, channel: bytes, on_message: Callable[[bytes], None], on_gap: Callable[[], None]) -> None:
        """Listen; `on_gap` is told after each loss, once listening again. Raises QueueUnavailable."""
        loop = asyncio.get_running_loop()
        if self._task is None:
            self._task = loop.create_task(self._stay_connected())
        self._listeners.setdefault(channel, []).append((on_message, on_gap))
        if channel in self._confirmed:
            return
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(channel, []).append(future)
        self._send("SUBSCRIBE", channel)
        try:
            async with asyncio.timeout(SUBSCRIBE_S):
                await future
        except TimeoutError:
            self._remove(channel, on_message)
            raise QueueUnavailable("Redis does not answer a subscription") from None
        except asyncio.CancelledError:
            self._remove(channel, on_message)
            raise

    async def unsubscribe(self, channel: bytes, on_message: Callable[[bytes], None]) -> None:
        """Listen no more."""
        self._remove(channel, on_message)

    def _remove(self, channel: bytes, on_message: Callable[[bytes], None]) -> None:
        left = [listener for listener in self._listeners.get(channel, []) if listener[0] != on_message]
        if left:
            self._listeners[channel] = left
        elif self._listeners.pop(channel, None) is not None:
            self._confirmed.discard(channel)
            self._send("UNSUBSCRIBE", channel)

    async def close(self) -> None:
        """Close for good."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._connection is not None:
            self._connection.close()

    def _send(self, *command: str | bytes) -> None:
        if self._connection is not None:
            self._connection.write(pack(command))

    async def _stay_connected(self) -> None:
        pause_s = 0.0
        while True:
            await asyncio.sleep(pause_s)
            self._loss.clear()
            try:
                self._connection = await connect(self._address, self)
            except QueueUnavailable as error:
                log.warning("subscriber.away", error=str(error))
                self._gap_pending = True
                pause_s = min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
                continue
            pause_s = FIRST_PAUSE_S
            if self._listeners:
                self._send("SUBSCRIBE", *self._listeners)
            else:
                self._gap_pending = False
            await self._watch(self._connection)

    async def _watch(self, connection: Connection) -> None:
        """Ping until the connection is lost; give it up when it is silent."""
        loop = asyncio.get_running_loop()
        while not self._loss.is_set():
            try:
                async with asyncio.timeout(PING_S):
                    await self._loss.wait()
            except TimeoutError:
                if loop.time() - connection.heard_s > 3 * PING_S:
                    connection.abort()
                self._send("PING")

    def received(self, reply: Any) -> None:
        """Hand a message to its listeners, or note a confirmed subscription."""
        if not isinstance(reply, list):
            if isinstance(reply, hiredis.ReplyError):
                log.error("subscriber.refused", error=str(reply))
                if self._connection is not None:
                    self._connection.abort()
            return
        kind = reply[0]
        if kind == b"message":
            for on_message, _ in self._listeners.get(reply[1], ()):
                on_message(reply[2])
        elif kind == b"subscribe":
            self._subscribed(reply[1])

    def _subscribed(self, channel: bytes) -> None:
        if channel in self._listeners:
            self._confirmed.add(channel)
        for future in self._waiting.pop(channel, ()):
            if not future.done():
                future.set_result(None)
        if self._gap_pending and len(self._confirmed) == len(self._listeners):
            self._gap_pending = False
            log.warning("subscriber.regained", channels=len(self._confirmed))
            for listeners in list(self._listeners.values()):
                for _, on_gap in listeners:
                    on_gap()

    def writable(self) -> None:
        """Do nothing: what is written here is small."""

    def lost(self) -> None:
        """Connect again."""
        self._connection = None
        self._confirmed.clear()
        self._gap_pending = True
        self._loss.set()
