"""An application that is made when its first call comes."""

import asyncio
from collections.abc import Callable

from litestar.types import ASGIApp, Receive, Scope, Send


class Late:
    """An ASGI application that a thread makes at its first call; other calls are served meanwhile."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._made: ASGIApp | None = None
        self._turn = asyncio.Lock()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a call. Raises what the making raised, and makes it anew for the next."""
        made = self._made or await self._first()
        await made(scope, receive, send)

    async def _first(self) -> ASGIApp:
        async with self._turn:
            if self._made is None:
                self._made = await asyncio.to_thread(self._make)
            return self._made
