"""A small Redis client that pipelines by itself: one event-loop tick's commands leave in one write.

A command costs a quarter of what it does in a pipeline of redis-py (docs/decisions/0003-own-redis-client.md).
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import hiredis

from gateway.queues.address import parse_address
from gateway.queues.connection import Connection, Part, connect, pack
from gateway.queues.port import QueueUnavailable
from gateway.queues.scripts import Script, all_scripts

__all__ = ["QueueUnavailable", "Wire", "WireError"]

ANSWER_S = 10.0
"""How long Redis may leave commands without any answer before the connection counts as lost."""
MOST_UNSENT_BYTES = 64 * 1024 * 1024
"""How much may wait for a full or missing connection."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
"""Between two tries to connect."""

_AWAY = ("LOADING", "OOM", "MISCONF", "READONLY", "MASTERDOWN", "BUSY ", "CLUSTERDOWN", "NOREPLICAS", "UNKILLABLE")
"""Error replies that say: not now."""


class WireError(Exception):
    """Redis refused a command for good, in its own words: wrong type, unknown group, no permission."""


class ScriptMissing(WireError):
    """Redis does not know the script: it was restarted or its scripts were flushed."""


class Wire:
    """A connection that is made when first used and made anew after a loss.

    Commands in flight on a lost connection fail with QueueUnavailable; those not yet sent wait for the
    next try to connect, and fail with it. A blocking command needs a wire of its own, with `answer_s` None.
    """

    def __init__(self, url: str, *, answer_s: float | None = ANSWER_S) -> None:
        self._address = parse_address(url)
        self._answer_s = answer_s
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._pause_s = 0.0
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._unsent_futures: list[asyncio.Future[Any]] = []
        self._sent: deque[asyncio.Future[Any]] = deque()
        self._sent_s = 0.0
        self._flushing = False
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False

    def call(self, *command: Part) -> asyncio.Future[Any]:
        """Send a command with this tick's others. The future raises QueueUnavailable or WireError."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._closed or self._unsent_bytes > MOST_UNSENT_BYTES:
            future.set_exception(QueueUnavailable("closed" if self._closed else "too much waits to be sent to Redis"))
            return future
        packed = pack(command)
        self._unsent.append(packed)
        self._unsent_bytes += len(packed)
        self._unsent_futures.append(future)
        if not self._flushing:
            self._flushing = True
            loop.call_soon(self._flush)
        return future

    async def run(self, script: Script, keys: Sequence[bytes], *arguments: Part) -> Any:
        """Run a script, loading it first where Redis does not know it. Raises QueueUnavailable or WireError."""
        try:
            return await self.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except ScriptMissing:
            await self.call("SCRIPT", "LOAD", script.text)
            return await self.call("EVALSHA", script.sha, len(keys), *keys, *arguments)

    async def close(self) -> None:
        """Close for good; whatever has not been answered fails."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._connection is not None:
            self._connection.close()
        if self._watch is not None:
            self._watch.cancel()
        self._fail_sent("closed")
        self._fail_unsent(QueueUnavailable("closed"))

    def reset(self) -> None:
        """Drop the connection; the next command makes a new one."""
        if self._connection is not None:
            self._connection.abort()

    def _flush(self) -> None:
        self._flushing = False
        connection = self._connection
        if connection is None:
            if self._connecting is None and self._unsent and not self._closed:
                self._connecting = asyncio.get_running_loop().create_task(self._connect())
            return
        if connection.paused or not self._unsent:
            return
        if not self._sent:
            self._sent_s = asyncio.get_running_loop().time()
        self._sent.extend(self._unsent_futures)
        connection.write(self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent))
        self._unsent.clear()
        self._unsent_futures.clear()
        self._unsent_bytes = 0
        if self._answer_s is not None and self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(self._answer_s, self._look, self._answer_s)

    def _look(self, answer_s: float) -> None:
        """Give up a connection on which Redis has been silent for too long."""
        self._watch = None
        connection, loop = self._connection, asyncio.get_running_loop()
        if connection is None or not self._sent:
            return
        silent_s = loop.time() - max(connection.heard_s, self._sent_s)
        if silent_s >= answer_s:
            connection.abort()
        else:
            self._watch = loop.call_later(answer_s - silent_s, self._look, answer_s)

    async def _connect(self) -> None:
        try:
            await asyncio.sleep(self._pause_s)
            loads = [("SCRIPT", "LOAD", script.text) for script in all_scripts()]
            self._connection = await connect(self._address, self, loads)
            self._pause_s = 0.0
        except QueueUnavailable as error:
            self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self._fail_unsent(error)
        finally:
            self._connecting = None
        self._flush()

    def received(self, reply: Any) -> None:
        """Resolve the oldest command in flight."""
        future = self._sent.popleft()
        if future.done():
            return  # whoever asked has gone
        if isinstance(reply, hiredis.ReplyError):
            future.set_exception(_error_of(str(reply)))
        else:
            future.set_result(reply)

    def writable(self) -> None:
        """Send what waited for a full socket."""
        self._flush()

    def lost(self) -> None:
        """Fail what was in flight, and connect again for what was not."""
        self._connection = None
        self._fail_sent("the connection to Redis was lost")
        self._flush()

    def _fail_sent(self, why: str) -> None:
        while self._sent:
            _fail(self._sent.popleft(), QueueUnavailable(why))

    def _fail_unsent(self, error: QueueUnavailable) -> None:
        futures = self._unsent_futures[:]
        self._unsent.clear()
        self._unsent_futures.clear()
        self._unsent_bytes = 0
        for future in futures:
            _fail(future, QueueUnavailable(str(error)))


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _error_of(message: str) -> Exception:
    if message.startswith("NOSCRIPT"):
        return ScriptMissing(message)
    return QueueUnavailable(message) if message.startswith(_AWAY) else WireError(message)
