"""SIGINT, SIGTERM and SIGHUP as events: the first asks for a drain, the second for an end at once."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """A signal came before the work was done."""


class Interrupt:
    """Hears the signals from its making on. Make it in a running loop."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._hear)

    def _hear(self) -> None:
        (self.second if self.first.is_set() else self.first).set()

    async def before(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work unless the first signal comes before it is done. Raises Interrupted."""
        return await _unless(self.first, work)

    async def before_second(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work unless the second signal comes before it is done. Raises Interrupted."""
        return await _unless(self.second, work)


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    task, heard = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    await asyncio.wait({task, heard}, return_when=asyncio.FIRST_COMPLETED)
    heard.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
        raise Interrupted
    return task.result()
