"""The gateways' side of a queue in Redis."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Literal, cast

from gateway.contract.events import Ended, Event, encode_ended, encode_event
from gateway.contract.pools import PoolSpec, WorkerStatus, decode_status, encode_spec
from gateway.contract.request import decode_request, encode_request
from gateway.queues.event_log import KEEP_S, PAGE, Entry, follow
from gateway.queues.keys import GATEWAYS, keys_of
from gateway.queues.limits import MOST_AT_ONCE, SILENT_MS
from gateway.queues.port import Depth, Standing, Waiting
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

    async def close(self) -> None:
        """Close both connections."""
        await self.channels.close()
        await self.wire.close()


class RedisQueue:
    """The queue of one pool, as gateways use it (port.GatewaySide)."""

    def __init__(self, wire: Wire, channels: Subscriber, pool: str) -> None:
        self._wire = wire
        self._channels = channels
        self._keys = keys = keys_of(pool)
        self._cancel_keys = (
            *(keys.queue, keys.jobs, keys.tags, keys.leases),
            *(keys.attempts, keys.excused, keys.cancels, keys.settlements),
        )
        self._enqueue = partial(wire.run, script("enqueue"), (keys.queue, keys.jobs, keys.tags, keys.wake))

    async def enqueue(self, items: Sequence[Waiting]) -> int:
        """Put requests in; one that is queued or leased already is left alone. Answers how many wait now."""
        waiting = 0
        for start in range(0, len(items), MOST_AT_ONCE):
            arguments: list[str | int | float | bytes] = []
            for item in items[start : start + MOST_AT_ONCE]:
                request = item.request
                arguments += (request.id, request.account, item.cost, encode_request(request))
            waiting = await self._enqueue(*arguments)
        return waiting

    async def cancel(self, ended: Ended) -> Literal["removed", "told", "absent"]:
        """Stop a request.

        A waiting one is removed, and `ended` goes to the settlements in the same step; a leased one's worker is told.
        """
        keys = self._keys
        payload = await self._wire.call("HGET", keys.jobs, ended.id)
        if payload is None:
            return "absent"
        kept = decode_request(payload).keep
        answer = await self._wire.run(
            script("cancel"),
            (*self._cancel_keys, keys.events(ended.id)),
            ended.id,
            encode_ended([ended]),
            encode_event(ended) if kept else b"",
            KEEP_S,
            keys.control,
            ended.reason,
        )
        return cast(Literal["removed", "told", "absent"], answer.decode())

    async def standing(self, request_id: str) -> Standing:
        """Say where a request is."""
        keys = self._keys
        state, number = await self._wire.run(script("standing"), (keys.queue, keys.leases, keys.attempts), request_id)
        if state == b"queued":
            return Standing("queued", position=number)
        return Standing("leased", attempt=number) if state == b"leased" else Standing("absent")

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
        log = self._keys.events(request_id)
        return follow(partial(self._page, log), self._channels, log, after)

    async def _page(self, log: bytes, start: str) -> Sequence[Entry]:
        rows = await self._wire.call("XRANGE", log, start or "-", "+", "COUNT", PAGE)
        return [(entry.decode(), int(fields[1]), fields[3]) for entry, fields in rows]

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
