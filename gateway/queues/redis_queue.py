"""The gateways' side of a queue in Redis."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Literal, cast

import msgspec

from gateway.contract.events import Ended, Event, encode_ended, encode_event
from gateway.contract.pools import PoolSpec, WorkerStatus, decode_status, encode_spec
from gateway.contract.request import decode_request, encode_request
from gateway.queues.event_log import KEEP_S, follow, latest
from gateway.queues.keys import GATEWAYS, keys_of
from gateway.queues.limits import MOST_AT_ONCE, SILENT_MS
from gateway.queues.moves import Moved, carrying, read_moved
from gateway.queues.port import Depth, Standing, Waiting
from gateway.queues.redis_log import RedisLog
from gateway.queues.redis_operator import RedisOperator
from gateway.queues.scripts import script
from gateway.queues.subscriber import Subscriber
from gateway.queues.wire import Wire

SPEC_S = 60
"""How long a pool's specification stands without a gateway to repeat it."""


class RedisQueues:
    """The queues of all pools on one Redis, over two connections: one for commands, one that listens."""

    def __init__(self, url: str) -> None:
        self.wire = Wire(url)
        self.channels = Subscriber(url)
        self._queues: dict[str, RedisQueue] = {}

    def pool(self, name: str) -> "RedisQueue":
        """Give the queue of a pool."""
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = RedisQueue(self.wire, self.channels, name)
        return queue

    def operator(self, pool: str) -> RedisOperator:
        """Give the operators' side of a pool."""
        return RedisOperator(self.wire, pool)

    async def close(self) -> None:
        """Close both connections."""
        await self.channels.close()
        await self.wire.close()


class RedisQueue:
    """The queue of one pool, as gateways use it (port.GatewaySide)."""

    def __init__(self, wire: Wire, channels: Subscriber, pool: str) -> None:
        self._wire = wire
        self._channels = channels
        self._pool = pool
        self._keys = keys = keys_of(pool)
        self._cancel_keys = (
            *(keys.queue, keys.jobs, keys.tags, keys.leases),
            *(keys.attempts, keys.excused, keys.cancels, keys.settlements),
        )
        first = (keys.queue, keys.jobs, keys.tags, keys.wake, keys.tally)
        self._enqueue = partial(wire.run, script("enqueue"), first)
        self._go_on = partial(wire.run, script("enqueue"), (*first, keys.attempts, keys.excused, keys.moved))

    async def enqueue(self, items: Sequence[Waiting]) -> int:
        """Put requests in; one that is queued or leased already is left alone. Answers how many wait now."""
        waiting = 0
        later = any(item.attempt for item in items)
        for start in range(0, len(items), MOST_AT_ONCE):
            arguments: list[str | int | float | bytes] = []
            for item in items[start : start + MOST_AT_ONCE]:
                request = item.request
                arguments += (request.id, request.account, item.cost, encode_request(request))
                if later:
                    arguments.append(item.attempt)
            waiting = await (self._go_on if later else self._enqueue)(*arguments)
        return waiting

    async def cancel(self, ended: Ended) -> Literal["removed", "told", "absent"]:
        """Stop a request.

        A waiting one is removed, and `ended` goes to the settlements in the same step; a leased one's worker is told.
        """
        return await self._cancel(ended, 0)

    async def _cancel(self, ended: Ended, after: int) -> Literal["removed", "told", "absent"]:
        """Stop a request, following it from pool to pool while its attempts rise."""
        keys = self._keys
        payload = await self._wire.call("HGET", keys.jobs, ended.id)
        if payload is None:
            return "absent"
        moved = read_moved(payload)
        request = None if moved else decode_request(payload)
        kept = moved.keep if moved else request is not None and request.keep
        end = carrying(ended, request, self._pool) if request else ended
        answer = await self._wire.run(
            script("cancel"),
            (*self._cancel_keys, keys.events(ended.id)),
            ended.id,
            encode_ended([end]),
            encode_event(end) if kept else b"",
            KEEP_S,
            keys.control,
            ended.reason,
        )
        moved = read_moved(answer)
        if moved is not None:
            return await self._beside(moved)._cancel(ended, moved.attempt) if moved.attempt > after else "absent"
        return cast(Literal["removed", "told", "absent"], answer.decode())

    def _beside(self, moved: Moved) -> "RedisQueue":
        return RedisQueue(self._wire, self._channels, moved.pool)

    async def end(self, ended: Ended) -> None:
        """Put the end of a request into the settlements that is in no queue."""
        await self._wire.call("XADD", self._keys.settlements, "*", "ended", encode_ended([ended]))

    async def standing(self, request_id: str) -> Standing:
        """Say where a request is."""
        return await self._standing(request_id, 0)

    async def _standing(self, request_id: str, after: int) -> Standing:
        """Say where a request is, following it from pool to pool while its attempts rise."""
        keys = self._keys
        state, found = await self._wire.run(
            script("standing"), (keys.queue, keys.leases, keys.attempts, keys.jobs), request_id
        )
        if state == b"queued":
            return Standing("queued", position=found)
        if state == b"leased":
            return Standing("leased", attempt=found)
        moved = read_moved(found) if state == b"moved" else None
        if moved is None or moved.attempt <= after:
            return Standing("absent")
        standing = await self._beside(moved)._standing(request_id, moved.attempt)
        return msgspec.structs.replace(standing, pool=standing.pool or moved.pool)

    async def place(self, account: int, cost: float) -> int:
        """Say how many would be before a request of this account and cost that was put in now."""
        keys = self._keys
        now, last = await self._wire.call("HMGET", keys.tags, "", account)
        finish = max(float(now or 0), float(last or 0)) + cost
        return int(await self._wire.call("ZCOUNT", keys.queue, "-inf", finish))

    async def depth(self) -> Depth:
        """Say how full the pool is."""
        call, keys = self._wire.call, self._keys
        counts = (call("ZCARD", keys.queue), call("ZCARD", keys.leases), call("XLEN", keys.settlements))
        return Depth(*await asyncio.gather(*counts))

    def events(self, request_id: str, after: str = "") -> AsyncIterator[tuple[str, Event]]:
        """Yield the kept events of a request after the entry `after`, and go on as they come, to `Ended`.

        Waits for ever where nothing comes, so look first whether the request is over. Raises EventsLost and
        QueueUnavailable.
        """
        return follow(partial(self._log, request_id), self._channels, self._pool, after)

    def _log(self, request_id: str, pool: str) -> RedisLog:
        return RedisLog(self._wire, pool, request_id)

    async def latest(self, request_id: str) -> Event | None:
        """Give the latest kept event of a request; None where nothing is kept of it."""
        return await latest(partial(self._log, request_id), self._pool)

    async def alive(self, gateway: str) -> None:
        """Give a sign of life of a gateway."""
        await self._wire.run(script("alive"), (GATEWAYS,), gateway)

    async def publish_spec(self, spec: PoolSpec) -> None:
        """Tell workers what the pool serves; repeat it within a minute."""
        await self._wire.call("SET", self._keys.spec, encode_spec(spec), "EX", SPEC_S)

    async def workers(self) -> list[WorkerStatus]:
        """List the workers whose last heartbeat is younger than three heartbeats."""
        statuses = await self._wire.run(script("workers"), (self._keys.workers,), SILENT_MS)
        return [decode_status(packed) for packed in statuses]
