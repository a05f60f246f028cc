"""The three loops of a worker on its queue: take, heartbeat, and hear of cancelled requests."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from gateway.contract.pools import WorkerStatus
from gateway.queues.port import QueueUnavailable, Taken, WorkerSide
from workers.engine import Engine
from workers.run import Runner
from workers.waiting import Backoff, happens_within

log = structlog.get_logger()

FULL_S = 0.25
"""How long a full worker waits for a slot before it asks its engine again: KV space comes free without an end, too."""


class Consumer:
    """Takes what its engine has room for, and keeps the leases of what it holds.

    A request on its last attempt runs while nothing else does that is on its last: a request that kills its
    workers would otherwise take down, attempt by attempt, all those that happen to be taken with it.
    """

    def __init__(
        self,
        queue: WorkerSide,
        engine: Engine,
        runner: Runner,
        *,
        attempts: int,
        max_concurrency: int,
        take_wait_s: float,
    ) -> None:
        self._queue = queue
        self._engine = engine
        self._runner = runner
        self._last_attempt = max(2, attempts)
        self._max_concurrency = max_concurrency
        self._take_wait_s = take_wait_s
        self._may_take = asyncio.Event()
        self._may_take.set()

    @property
    def told_off(self) -> bool:
        """Whether an operator wants it to take no more: what it runs goes on."""
        return not self._may_take.is_set()

    async def take(self, stopping: asyncio.Event) -> None:
        """Take and start requests until told to stop. A take under way is waited for: what it brings is under lease."""
        backoff = Backoff("take.retry")
        while not stopping.is_set():
            if self.told_off:
                await happens_within(self._may_take, FULL_S)
                continue
            free = await self._room()
            if not free:
                continue
            try:
                taken = await self._queue.take(free, wait_s=self._take_wait_s)
            except QueueUnavailable as error:
                await backoff.pause(error)
                continue
            backoff.reset()
            if taken and (stopping.is_set() or self.told_off):
                await self._return([item.request.id for item in taken])
                continue
            last = [item for item in taken if item.attempt - item.excused >= self._last_attempt]
            for item in taken:
                if item.attempt - item.excused < self._last_attempt:
                    self._runner.start(item)
            await asyncio.sleep(0)  # every task takes its first step, so that the engine knows how full it is
            if last:
                await self._try_one(last, stopping)

    async def _try_one(self, last: Sequence[Taken], stopping: asyncio.Event) -> None:
        """Give back all but one of those on their last attempt, and take no more until that one has ended."""
        one, *others = last
        log.info("take.last_attempt", request_id=one.request.id, attempt=one.attempt, given_back=len(others))
        if others:
            await self._return([item.request.id for item in others])
        self._runner.start(one)
        while self._runner.held.get(one.request.id) == one.attempt and not stopping.is_set():
            self._runner.freed.clear()
            await happens_within(self._runner.freed, FULL_S)

    async def _return(self, request_ids: Sequence[str]) -> None:
        """Give back what is not to be run now; where that fails, its leases run out."""
        try:
            await self._queue.give_back(request_ids)
        except QueueUnavailable as error:
            log.warning("take.not_returned", requests=len(request_ids), error=str(error))

    async def _room(self) -> int:
        """Answer the free slots; where there are none, wait for an end or for a moment, and answer 0."""
        runner = self._runner
        runner.freed.clear()
        free = min(self._engine.capacity(), self._max_concurrency - len(runner.held))
        if free > 0:
            return free
        await happens_within(runner.freed, FULL_S)
        return 0

    async def beat(self, every_s: float, status: Callable[[], WorkerStatus]) -> None:
        """Keep all leases with one command each `every_s`, and stop what the answer names. Runs until cancelled."""
        runner = self._runner
        backoff = Backoff("beat.retry")
        while True:
            held = dict(runner.held)
            try:
                beat = await self._queue.beat(list(held), status())
            except QueueUnavailable as error:
                await backoff.pause(error)
                continue
            backoff.reset()
            for request_id in beat.lost:
                runner.stop(request_id, held.get(request_id, 0), "lost")
            for cancel in beat.cancelled:
                runner.stop(cancel.id, held.get(cancel.id, 0), cancel.reason)
            self._obey(drain=beat.drain)
            await asyncio.sleep(every_s)

    def _obey(self, *, drain: bool) -> None:
        if drain != self.told_off:
            log.info("worker.told_off" if drain else "worker.told_on", running=self._runner.running)
            if drain:
                self._may_take.clear()
            else:
                self._may_take.set()

    async def hear_cancels(self) -> None:
        """Stop requests as they are cancelled. Runs until cancelled; what is missed comes with a heartbeat."""
        runner = self._runner
        backoff = Backoff("cancels.retry")
        while True:
            try:
                async for cancel in self._queue.cancels():
                    runner.stop(cancel.id, runner.held.get(cancel.id, 0), cancel.reason)
                    backoff.reset()
            except QueueUnavailable as error:
                await backoff.pause(error)
