"""The two kinds of queue that pass the same suite, behind one face."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import redis

from gateway.contract.events import Choice, Ended, Frame, Step, TextOutput
from gateway.contract.ids import new_request_id
from gateway.contract.phases import Phases
from gateway.contract.pools import WorkerStatus
from gateway.contract.request import Leg, Request
from gateway.contract.units import Units
from gateway.queues.keys import keys_of
from gateway.queues.memory import MemoryQueues
from gateway.queues.moves import next_leg
from gateway.queues.operators import OperatorSide
from gateway.queues.port import GatewaySide, Move, SettlerSide, Taken, Waiting, WorkerSide
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler
from gateway.queues.redis_worker import RedisWorker
from gateway.queues.replies import Replies

POOL = "pool"
UNREAD_MS = 900_000
"""How long what a settler has read stays its own, unless a test says otherwise."""
SOON_S = 30.0


async def until(what: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(SOON_S):
        while not what():
            await asyncio.sleep(0.002)


class Backend(Protocol):
    """What the suite needs of a kind of queue."""

    def gateway(self, pool: str = POOL) -> GatewaySide: ...

    def worker(self, pool: str = POOL) -> WorkerSide: ...

    def operator(self, pool: str = POOL) -> OperatorSide: ...

    def settler(self, name: str = "settler", *, idle_ms: int = UNREAD_MS) -> SettlerSide: ...

    async def listen(self, name: str, deliver: Callable[[Frame], None]) -> None: ...

    def expire(self, *request_ids: str, pool: str = POOL) -> None:
        """Let leases run out now."""
        ...

    def listeners(self, channel: bytes) -> int:
        """Count those who listen to a channel."""
        ...

    async def close(self) -> None: ...


class InMemory:
    """The twin."""

    def __init__(self) -> None:
        self._queues = MemoryQueues()
        self.state = self._queues.state

    def gateway(self, pool: str = POOL) -> GatewaySide:
        return self._queues.pool(pool)

    def worker(self, pool: str = POOL) -> WorkerSide:
        return self._queues.worker(pool)

    def operator(self, pool: str = POOL) -> OperatorSide:
        return self._queues.operator(pool)

    def settler(self, name: str = "settler", *, idle_ms: int = UNREAD_MS) -> SettlerSide:
        return self._queues.settler(idle_ms=idle_ms)

    async def listen(self, name: str, deliver: Callable[[Frame], None]) -> None:
        await Replies(self._queues.channels, name, deliver, lambda: None).open()

    def expire(self, *request_ids: str, pool: str = POOL) -> None:
        for request_id in request_ids:
            self._queues.state(pool).leases[request_id] = 0

    def listeners(self, channel: bytes) -> int:
        return len(self._queues.channels._listeners.get(channel, ()))

    async def close(self) -> None:
        await self._queues.close()


class InRedis:
    """The real thing, every side with connections of its own, as in processes of their own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.queues = RedisQueues(url)
        self.client = redis.Redis.from_url(url)
        self._sides: list[RedisWorker | RedisSettler] = []

    def gateway(self, pool: str = POOL) -> GatewaySide:
        return self.queues.pool(pool)

    def worker(self, pool: str = POOL) -> RedisWorker:
        worker = RedisWorker(self.url, pool)
        self._sides.append(worker)
        return worker

    def operator(self, pool: str = POOL) -> OperatorSide:
        return self.queues.operator(pool)

    def settler(self, name: str = "settler", *, idle_ms: int = UNREAD_MS) -> RedisSettler:
        settler = RedisSettler(self.url, name, idle_ms=idle_ms)
        self._sides.append(settler)
        return settler

    async def listen(self, name: str, deliver: Callable[[Frame], None]) -> None:
        await Replies(self.queues.channels, name, deliver, lambda: None).open()

    def expire(self, *request_ids: str, pool: str = POOL) -> None:
        self.client.zadd(keys_of(pool).leases, dict.fromkeys(request_ids, 0), xx=True)

    def listeners(self, channel: bytes) -> int:
        [(_, count)] = self.client.pubsub_numsub(channel)  # type: ignore[misc]
        return int(count)

    async def close(self) -> None:
        for side in self._sides:
            await side.close()
        await self.queues.close()
        self.client.close()


def request(
    account: int = 1, *, reply: str = "", keep: bool = False, stream: bool = False, legs: Sequence[str] = ()
) -> Request:
    """Make a request; `legs` are the pools where it may go on."""
    return Request(
        new_request_id(),
        account,
        "model",
        "chat",
        b"input",
        7,
        reply=reply,
        keep=keep,
        stream=stream,
        legs=[Leg(pool, f"model of {pool}", 8 + at) for at, pool in enumerate(legs)],
    )


def onward(taken: Taken, pool: str = POOL) -> Move:
    """Make of an attempt that failed in a pool what its request is in its next leg."""
    one = taken.request
    step = Step("", one.model, "", pool, "worker", taken.attempt, "failed", "engine_error", Units(), Phases())
    return Move(next_leg(one, [step], 5), one.legs[0].pool, taken.attempt)


async def carry(backend: "Backend", *pools: str, settler: SettlerSide | None = None) -> list[Move]:
    """Do what settlers do with what goes on in other pools; answers what went on."""
    side = settler or backend.settler("carrier", idle_ms=0)
    moves = []
    for pool, entry in await side.settlements(pools, 1000, wait_s=0):
        if entry.move is not None:
            moves.append(entry.move)
            await side.leave_word(pool, [entry.move] if entry.move.lost else [])
            await backend.gateway(entry.move.pool).enqueue([Waiting(entry.move.request, attempt=entry.move.attempt)])
            for end in await side.stops(pool, [entry.move.request.id]):
                await backend.gateway(entry.move.pool).cancel(end)
            await side.settled([(pool, entry.entry)])
    return moves


def waiting(*requests: Request, cost: float = 1.0) -> list[Waiting]:
    """Make requests ready for the queue."""
    return [Waiting(one, cost) for one in requests]


def ended(taken: Taken, text: str = "answer") -> Ended:
    """Make the good end of an attempt."""
    return Ended(
        taken.request.id,
        taken.attempt,
        "succeeded",
        "done",
        Units(output_tokens=20),
        Phases(forward_us=1000),
        taken.request.price,
        worker="worker",
        reply=taken.request.reply,
        output=TextOutput([Choice(text)]),
    )


def stopped(one: Request) -> Ended:
    """Make the end of a request that its caller stops before it runs."""
    return Ended(one.id, 0, "cancelled", "cancelled_by_caller", Units(), Phases(), one.price, reply=one.reply)


def status(worker: str = "worker") -> WorkerStatus:
    """Make a worker's word about itself."""
    return WorkerStatus(
        worker=worker,
        pool=POOL,
        engine="fake",
        pid=1,
        version="0",
        models={},
        capacity=8,
        running=0,
        memory_bytes=0,
    )
