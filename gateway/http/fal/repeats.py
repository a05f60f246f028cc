"""A submit that is sent again because its answer was never read: it is told of the first, and nothing runs twice.

fal's client sends a submit up to ten times, when a connection breaks or takes too long, without an idempotency key. A
gateway knows that an answer was not read where the connection is gone before the answer was written. Only such a
submit is repeated by the next one of the same key, path and body: two callers who ask for the same and both wait get
one request each. What another gateway process did is not known here, nor what was lost after it was written.
"""

import asyncio
import time
from collections import OrderedDict

from litestar.types import Receive

from gateway.http.departures import has_left

KEEP_S = 120.0
"""How long an answer that was not read is kept for the one who comes again: longer than the client's last pause."""
MOST_KEPT = 10_000


class First:
    """One submit under way. `request_id` is known when it is accepted, and cancelled where it was refused."""

    __slots__ = ("receive", "request_id")

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.request_id: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Repeats:
    """The submits of one gateway process that are under way, and those whose answers were not read."""

    def __init__(self) -> None:
        self._under_way: dict[bytes, list[First]] = {}
        self._unread: OrderedDict[bytes, list[tuple[float, str]]] = OrderedDict()

    async def earlier(self, digest: bytes) -> str | None:
        """Give the request of an earlier submit whose caller has left without an answer; each is given once."""
        unread = self._unread.get(digest)
        while unread:
            kept_s, request_id = unread.pop(0)
            if not unread:
                self._unread.pop(digest, None)
            if time.monotonic() - kept_s < KEEP_S:
                return request_id
        for first in self._under_way.get(digest, ()):
            if await has_left(first.receive) and first in self._under_way.get(digest, ()):
                self._forget(digest, first)  # whoever comes next is not told of it too
                try:
                    return await asyncio.shield(first.request_id)
                except asyncio.CancelledError:
                    if not first.request_id.cancelled():
                        raise  # it is this caller who was broken off
        return None

    def begin(self, digest: bytes, receive: Receive) -> First:
        """Note that a submit begins."""
        first = First(receive)
        self._under_way.setdefault(digest, []).append(first)
        return first

    def refused(self, digest: bytes, first: First) -> None:
        """Note that a submit was refused."""
        self._forget(digest, first)
        first.request_id.cancel()

    async def accepted(self, digest: bytes, first: First, request_id: str) -> None:
        """Note that a submit was accepted, just before its answer is written: it is kept where nobody would read it."""
        first.request_id.set_result(request_id)
        if first not in self._under_way.get(digest, ()):
            return  # told already to the one who came again
        if await has_left(first.receive) and first in self._under_way.get(digest, ()):
            self._unread.setdefault(digest, []).append((time.monotonic(), request_id))
            self._unread.move_to_end(digest)
            if len(self._unread) > MOST_KEPT:
                self._unread.popitem(last=False)
        self._forget(digest, first)

    def _forget(self, digest: bytes, first: First) -> None:
        waiting = self._under_way.get(digest, [])
        if first in waiting:
            waiting.remove(first)
        if not waiting:
            self._under_way.pop(digest, None)
