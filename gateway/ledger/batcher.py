"""Many callers, one round trip: whatever has arrived when the last batch is done goes into the next one.

Nothing waits for company: a batch leaves in the event-loop tick after its first item came, or as soon as
the batch before it is back. Under load batches grow by themselves.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar

from gateway.errors import Unavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Again(Enum):
    """Put the item in front of the next batch: it could not be answered in the company it was in."""

    AGAIN = 0


AGAIN: Final = Again.AGAIN


class Batcher(Generic[Item, Answer]):
    """Collects items of concurrent callers and hands them to `send`, one batch at a time.

    `send` answers each item by its position: an answer, an exception for that caller alone, or AGAIN.
    A caller who is cancelled before his item was sent takes it with him. One who is cancelled later
    leaves an answer that nobody reads: `abandoned` is told, unless it is an exception.
    """

    def __init__(
        self,
        send: Callable[[list[Item]], Awaitable[Sequence[Answer | BaseException | Again]]],
        *,
        most: int,
        limit: int,
        abandoned: Callable[[Item, Answer], None],
    ) -> None:
        self._send = send
        self._most = most
        self._limit = limit
        self._abandoned = abandoned
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._out: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._sender: asyncio.Task[None] | None = None
        self._closed = False

    def submit(self, item: Item) -> asyncio.Future[Answer]:
        """Hand in an item; await the future for its answer. Raises Unavailable when too many wait already."""
        if self._closed:
            raise Unavailable("Faregate is shutting down; try again.", retry_after_s=1.0)
        if len(self._waiting) >= self._limit:
            raise Unavailable("Too many calls wait for the database; try again.", retry_after_s=1.0)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((item, future))
        if self._sender is None:
            self._sender = loop.create_task(self._run())
            self._sender.add_done_callback(self._stopped)
        return future

    async def close(self) -> None:
        """Take no more items, and return when those that are waiting have been answered."""
        self._closed = True
        if self._sender is not None:
            await asyncio.wait([self._sender])

    async def _run(self) -> None:
        waiting = self._waiting
        while waiting:
            out = self._out
            while waiting and len(out) < self._most:
                entry = waiting.popleft()
                if not entry[1].done():  # else its caller has gone, and it was never sent
                    out.append(entry)
            if out:
                self._answer(await self._send([item for item, _ in out]))
        self._sender = None

    def _answer(self, answers: Sequence[Answer | BaseException | Again]) -> None:
        again = []
        out, self._out = self._out, []
        for entry, answer in zip(out, answers, strict=True):
            item, future = entry
            if answer is AGAIN:
                again.append(entry)
            elif isinstance(answer, BaseException):
                if not future.done():
                    future.set_exception(answer)
            elif future.done():
                self._abandoned(item, answer)
            else:
                future.set_result(answer)
        self._waiting.extendleft(reversed(again))

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """Fail everyone who waits when the sender itself broke: an error in `send` that no caller caused."""
        if not task.cancelled() and task.exception() is None:
            return
        self._sender = None
        left, self._out = [*self._out, *self._waiting], []
        self._waiting.clear()
        error = Unavailable("The request could not be admitted.") if task.cancelled() else task.exception()
        for _, future in left:
            if not future.done():
                future.set_exception(error or Unavailable("The request could not be admitted."))
