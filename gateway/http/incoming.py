"""The body of a call that may be refused before it was read to its end."""

import asyncio
from typing import Any

from litestar.types import Receive

MOST_DRAINED_BYTES = 1024 * 1024
DRAIN_S = 1.0


class Incoming:
    """Receives a body and knows whether all of it has come.

    A connection that is closed while bytes are on their way is reset, and the caller may never see why: what is left
    of a small body is read away first.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def __call__(self) -> Any:
        """Receive the next message."""
        message: Any = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body")
        return message

    async def drained(self) -> bool:
        """Read what is left away; answers whether that was all of it."""
        left = MOST_DRAINED_BYTES
        try:
            async with asyncio.timeout(DRAIN_S):
                while not self._ended and left > 0:
                    left -= len((await self()).get("body", b""))
        except TimeoutError:
            return False
        return self._ended
