"""Notices callers that leave before their answer.

A task that waits for the disconnect costs more than a short request, so only callers who have waited a
while get one.
"""

import asyncio

from litestar.types import Receive

from gateway.errors import Conflict
from gateway.flow.way import Placed

LOOK_S = 0.1


class Departures:
    """Watches the connections of waiting callers."""

    def __init__(self) -> None:
        self._new: list[tuple[Placed, Receive]] = []
        self._older: list[tuple[Placed, Receive]] = []
        self._watching: set[asyncio.Task[None]] = set()

    def watch(self, placed: Placed, receive: Receive) -> None:
        """Watch one caller, from the second look on: most have their answer by then."""
        self._new.append((placed, receive))

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            waiting, self._older, self._new = self._older, self._new, []
            for placed, receive in waiting:
                if placed.box is not None and not placed.box.done:
                    task = asyncio.create_task(self._until_gone(placed, receive))
                    self._watching.add(task)
                    task.add_done_callback(self._watching.discard)

    async def _until_gone(self, placed: Placed, receive: Receive) -> None:
        """Wait for the end of connection or request: uvicorn reports both as a disconnect."""
        while (await receive())["type"] != "http.disconnect":
            continue
        box = placed.box
        if box is not None and not box.done:
            box.fail(Conflict("The caller has left.", code="cancelled", request_id=placed.id))


async def has_left(receive: Receive) -> bool:
    """Say whether a caller whose body has been read is gone by now, without waiting for anything."""
    task = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    if task.done():
        return task.result()["type"] == "http.disconnect"
    task.cancel()
    return False
