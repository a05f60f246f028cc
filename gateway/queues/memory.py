"""The queue's twin in memory: all three sides in one process, for tests of what uses a queue."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Literal, cast

import msgspec

from gateway.contract.events import Ended, Event, Frame, encode_event, encode_frames
from gateway.contract.pools import PoolSpec, WorkerStatus
from gateway.contract.request import Request
from gateway.queues.event_log import PAGE, Entry, follow, latest
from gateway.queues.held import Held, read_cancel
from gateway.queues.keys import keys_of, reply_channel
from gateway.queues.limits import IDLE_MS, LEASE_MS, SILENT_MS
from gateway.queues.memory_operator import MemoryOperator
from gateway.queues.memory_pool import MemoryPool
from gateway.queues.memory_settler import MemorySettler
from gateway.queues.moves import Moved
from gateway.queues.port import Beat, Cancel, Depth, Move, Standing, Taken, Waiting

Heard = Callable[[bytes], None]


def _clock_us() -> int:
    return time.time_ns() // 1000


class MemoryChannels:
    """Channels inside one event loop."""

    def __init__(self) -> None:
        self._listeners: dict[bytes, list[Heard]] = defaultdict(list)

    async def subscribe(self, channel: bytes, on_message: Heard, on_gap: Callable[[], None]) -> None:
        """Listen. Nothing is ever missed here, so `on_gap` is never told."""
        self._listeners[channel].append(on_message)

    async def unsubscribe(self, channel: bytes, on_message: Heard) -> None:
        """Listen no more."""
        self._listeners[channel].remove(on_message)

    def publish(self, channel: bytes, message: bytes) -> None:
        """Tell all who listen, in the next step of the loop."""
        for heard in self._listeners.get(channel, ()):
            asyncio.get_running_loop().call_soon(heard, message)


class MemoryQueues:
    """All pools of one process. `now_us` is the clock of leases and heartbeats."""

    def __init__(self, now_us: Callable[[], int] = _clock_us) -> None:
        self.channels = MemoryChannels()
        self.now_us = now_us
        self.pools: dict[str, MemoryPool] = {}
        self.gateways: dict[str, int] = {}

    def state(self, name: str) -> MemoryPool:
        """Give the state of a pool."""
        if name not in self.pools:
            self.pools[name] = MemoryPool(name, self.now_us, self.channels.publish)
        return self.pools[name]

    def pool(self, name: str) -> "MemoryQueue":
        """Give the gateways' side of a pool."""
        return MemoryQueue(self, self.state(name))

    def worker(self, pool: str) -> "MemoryWorker":
        """Give a worker's side of a pool."""
        return MemoryWorker(self, self.state(pool))

    def operator(self, pool: str) -> MemoryOperator:
        """Give the operators' side of a pool."""
        return MemoryOperator(self.state(pool))

    def settler(self, *, idle_ms: int = IDLE_MS) -> "MemorySettler":
        """Give a settler's side of all pools."""
        return MemorySettler(self.state, self.channels.publish, self.now_us, self.gateways, idle_ms)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class MemoryQueue:
    """The queue of one pool, as gateways use it (port.GatewaySide)."""

    def __init__(self, queues: MemoryQueues, state: MemoryPool) -> None:
        self._queues = queues
        self._state = state

    async def enqueue(self, items: Sequence[Waiting]) -> int:
        """Put requests in; one that is queued or leased already is left alone. Answers how many wait now."""
        return self._state.enqueue(items)

    async def cancel(self, ended: Ended) -> Literal["removed", "told", "absent"]:
        """Stop a request: see port.GatewaySide."""
        answer, after = self._state.cancel(ended), 0
        while isinstance(answer, Moved):
            if answer.attempt <= after:
                return "absent"
            after, answer = answer.attempt, self._queues.state(answer.pool).cancel(ended)
        return cast(Literal["removed", "told", "absent"], answer)

    async def end(self, ended: Ended) -> None:
        """Put the end of a request into the settlements that is in no queue."""
        self._state.end(ended)

    async def standing(self, request_id: str) -> Standing:
        """Say where a request is."""
        found, pool, after = self._state.standing(request_id), "", 0
        while isinstance(found, Moved):
            if found.attempt <= after:
                return Standing("absent", pool=pool)
            pool, after = found.pool, found.attempt
            found = self._queues.state(pool).standing(request_id)
        return msgspec.structs.replace(found, pool=pool)

    async def place(self, account: int, cost: float) -> int:
        """Say how many would be before a request of this account and cost that was put in now."""
        finish = max(self._state.tags.get(account, 0.0), self._state.virtual) + cost
        return sum(1 for place, _ in self._state.queue if place <= finish)

    async def depth(self) -> Depth:
        """Say how full the pool is."""
        return Depth(len(self._state.queue), len(self._state.leases), len(self._state.stream))

    def events(self, request_id: str, after: str = "") -> AsyncIterator[tuple[str, Event]]:
        """Yield the kept events of a request after the entry `after`, and go on as they come, to `Ended`."""
        return follow(partial(self._log, request_id), self._queues.channels, self._state.name, after)

    def _log(self, request_id: str, pool: str) -> "MemoryLog":
        return MemoryLog(self._queues.state(pool), request_id)

    async def latest(self, request_id: str) -> Event | None:
        """Give the latest kept event of a request; None where nothing is kept of it."""
        return await latest(partial(self._log, request_id), self._state.name)

    async def alive(self, gateway: str) -> None:
        """Give a sign of life of a gateway."""
        self._queues.gateways[gateway] = self._queues.now_us()

    async def publish_spec(self, spec: PoolSpec) -> None:
        """Tell workers what the pool serves."""
        self._state.spec = spec

    async def workers(self) -> list[WorkerStatus]:
        """List the workers whose last heartbeat is younger than three heartbeats."""
        oldest = self._queues.now_us() - SILENT_MS * 1000
        return [status for seen_us, status in self._state.workers.values() if seen_us >= oldest]


class MemoryLog:
    """The event log of one request in one pool (event_log.Log)."""

    def __init__(self, state: MemoryPool, request_id: str) -> None:
        self._state = state
        self._request_id = request_id
        self.channel = keys_of(state.name).events(request_id)

    async def page(self, start: str) -> list[Entry]:
        """Read up to PAGE entries from the id `start` on, from the first where that is empty."""
        first = _place(start) if start else (0, 0)
        return [entry for entry in self._state.logs.get(self._request_id, ()) if _place(entry[0]) >= first][:PAGE]

    async def last(self) -> Entry | None:
        """Read the last entry; None where nothing is kept."""
        entries = self._state.logs.get(self._request_id)
        return entries[-1] if entries else None

    async def moved(self) -> Moved | None:
        """Say where the request went on; None where it is in this pool, or in none."""
        left = self._state.moved.get(self._request_id)
        return left[1] if left is not None else None


def _place(entry: str) -> tuple[int, int]:
    attempt, _, number = entry.partition("-")
    return int(attempt), int(number)


class MemoryWorker:
    """The queue of one pool, as one worker uses it (port.WorkerSide)."""

    def __init__(self, queues: MemoryQueues, state: MemoryPool) -> None:
        self._queues = queues
        self._state = state
        self._held = Held()
        self._lease_ms = LEASE_MS

    async def close(self) -> None:
        """Do nothing: leases that are left expire."""

    async def spec(self) -> PoolSpec | None:
        """Read what the pool serves, and the length of its leases; None while nobody has said so."""
        spec = self._state.spec
        if spec is not None:
            self._lease_ms = spec.lease_ms
        return spec

    async def take(self, most: int, *, wait_s: float) -> list[Taken]:
        """Take up to `most` requests under lease, waiting up to `wait_s` for the first."""
        try:
            async with asyncio.timeout(wait_s):
                await _until(self._state, lambda: bool(self._state.queue) and "" not in self._state.orders)
        except TimeoutError:
            pass
        taken = self._state.take(most, self._lease_ms)
        self._held.add(taken)
        return taken

    async def beat(self, request_ids: Sequence[str], status: WorkerStatus) -> Beat:
        """Extend the leases of `request_ids`, and leave the worker's status."""
        held = self._held.attempts(request_ids)
        lost, cancelled = self._state.beat(held, self._lease_ms, status)
        self._held.drop(pair for pair in held if pair[0] in lost)
        gone = set(lost) | set(request_ids).difference(request_id for request_id, _ in held)
        still = [request_id for request_id in request_ids if request_id in gone]
        return Beat(still, cancelled, status.worker in self._state.orders)

    async def cancels(self) -> AsyncIterator[Cancel]:
        """Yield leased requests that are to stop, as they are told; a heartbeat repeats them."""
        told: asyncio.Queue[Cancel] = asyncio.Queue()
        control = keys_of(self._state.name).control

        def heard(message: bytes) -> None:
            cancel = read_cancel(message)
            if cancel.id in self._held:
                told.put_nowait(cancel)

        await self._queues.channels.subscribe(control, heard, lambda: None)
        try:
            while True:
                yield await told.get()
        finally:
            await self._queues.channels.unsubscribe(control, heard)

    async def finish(self, ended: Sequence[Ended]) -> list[str]:
        """Put terminal events into the settlements, give up their leases, tell who waits. Answers the fenced ids."""
        through = [end for end in ended if self._state.holds(end.id, end.attempt)]
        if through:
            closing = self._held.closing(through)
            self._state.finish([end.id for end in through], closing.stream)
            for name, frames in closing.frames.items():
                self._queues.channels.publish(reply_channel(name), encode_frames(frames))
            for deltas, end in closing.logs:
                self._state.close_log(end.id, end.attempt, deltas, encode_event(end))
        self._held.drop((end.id, end.attempt) for end in ended)
        passed = {end.id for end in through}
        return [end.id for end in ended if end.id not in passed]

    async def hand_over(self, moves: Sequence[Move]) -> list[str]:
        """Let leased requests go on in other pools. Answers the fenced ids."""
        fenced = [move.request.id for move in moves if self._state.hand_over(move)]
        self._held.drop((move.request.id, move.attempt) for move in moves)
        return fenced

    async def emit(self, frames: Sequence[tuple[Request, Frame]]) -> None:
        """Send what one tick produced: to reply channels in coalesced frames, and to the event log of kept requests."""
        channels: dict[str, list[Frame]] = {}
        for request, frame in self._held.current(frames):
            if request.reply:
                channels.setdefault(request.reply, []).append(frame)
            if request.keep:
                self._state.log(frame.id, frame.attempt, [(frame.seq, encode_event(frame.event))])
        for name, gathered in channels.items():
            self._queues.channels.publish(reply_channel(name), encode_frames(gathered))

    async def give_back(self, request_ids: Sequence[str]) -> None:
        """Return leased requests that did not begin to the front of the queue, at no attempt's cost."""
        held = self._held.attempts(request_ids)
        self._state.give_back(held)
        self._held.drop(held)


async def _until(pool: MemoryPool, there: Callable[[], bool]) -> None:
    """Wait until something is there in a pool."""
    while not there():
        pool.news.clear()
        await pool.news.wait()
