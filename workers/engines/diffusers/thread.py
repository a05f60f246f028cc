"""The one thread in which torch works: the event loop never waits for it, and neither does the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

Result = TypeVar("Result")


class TorchThread:
    """Does one thing after the other. A daemon: a worker told to stop while a model loads can go at once."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, name="torch", daemon=True).start()

    async def do(self, work: Callable[[], Result]) -> Result:
        """Do it in the thread, and answer or raise what it does. When cancelled, it is not waited for."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_do(work), self._loop))

    def close(self) -> None:
        """End the thread when it has done what it was given."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        with closing(self._loop):
            self._loop.run_forever()


async def _do(work: Callable[[], Result]) -> Result:
    return work()
