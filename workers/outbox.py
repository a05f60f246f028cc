"""What requests produced, on its way into Redis: all of one event-loop tick in one command.

There is one sender, so a frame never overtakes the one before it and an end never overtakes its
frames. While a command is under way the next ticks gather, so the batches grow with the load.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from gateway.contract.events import Ended, Frame
from gateway.contract.request import Request
from gateway.queues.port import Move, QueueUnavailable, WorkerSide
from workers.waiting import Backoff

MOST_FRAMES = 1000
MOST_ENDED = 256
"""What one command carries at most."""

Batch = TypeVar("Batch")
Result = TypeVar("Result")
Acknowledged = Callable[[Sequence[Ended], set[str]], None]
"""Told a batch of ends, and the ids in it that were fenced."""
HandedOver = Callable[[Sequence[Move], set[str]], None]
"""Told a batch of requests that go on in other pools, and the ids in it that were fenced."""


class Outbox:
    """Gathers events, sends them in order, and retries until Redis has acknowledged them.

    An end is retried for as long as the process lives, its lease kept meanwhile: what ran must not run again because
    Redis was away. So is the word that a request goes on in another pool.
    """

    def __init__(self, queue: WorkerSide, acknowledged: Acknowledged, handed_over: HandedOver) -> None:
        self._queue = queue
        self._acknowledged = acknowledged
        self._handed_over = handed_over
        self._frames: list[tuple[Request, Frame]] = []
        self._ended: list[Ended] = []
        self._moves: list[Move] = []
        self._filled = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def frame(self, request: Request, frame: Frame) -> None:
        """Add one event of a running request."""
        self._frames.append((request, frame))
        self._fill()

    def end(self, ended: Ended) -> None:
        """Add the terminal event of one attempt."""
        self._ended.append(ended)
        self._fill()

    def move(self, move: Move) -> None:
        """Add a request that goes on in another pool, in place of the end of its attempt here."""
        self._moves.append(move)
        self._fill()

    def _fill(self) -> None:
        if not self._filled.is_set():
            self._filled.set()
            self._empty.clear()

    async def emptied(self) -> None:
        """Wait until everything added so far is acknowledged."""
        await self._empty.wait()

    async def send(self) -> None:
        """Send what comes, until cancelled."""
        while True:
            await self._filled.wait()
            while self._frames or self._ended or self._moves:
                frames, self._frames = self._frames, []
                ended, self._ended = self._ended, []
                moves, self._moves = self._moves, []
                await self._send_all(frames, ended)
                await self._send_on(moves)
            self._filled.clear()
            self._empty.set()

    async def _send_all(self, frames: list[tuple[Request, Frame]], ended: list[Ended]) -> None:
        for start in range(0, len(frames), MOST_FRAMES):
            await _persist(self._queue.emit, frames[start : start + MOST_FRAMES])
        for start in range(0, len(ended), MOST_ENDED):
            batch = ended[start : start + MOST_ENDED]
            fenced = await _persist(self._queue.finish, batch)
            self._acknowledged(batch, set(fenced))

    async def _send_on(self, moves: list[Move]) -> None:
        for start in range(0, len(moves), MOST_ENDED):
            batch = moves[start : start + MOST_ENDED]
            fenced = await _persist(self._queue.hand_over, batch)
            self._handed_over(batch, set(fenced))


async def _persist(command: Callable[[Batch], Awaitable[Result]], batch: Batch) -> Result:
    """Repeat a command, with the same events, until Redis answers."""
    backoff = Backoff("outbox.retry")
    while True:
        try:
            return await command(batch)
        except QueueUnavailable as error:
            failure = error
        await backoff.pause(failure)
