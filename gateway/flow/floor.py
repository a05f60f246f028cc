"""What one gateway knows of the pools' floors, sampled once a second: workers, depths; and what it tells them."""

import asyncio
from collections.abc import Callable

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.contract.pools import PoolSpec, ServedModel, WorkerStatus
from gateway.queues.port import Depth, GatewaySide, QueueUnavailable
from gateway.routing.backlog import Backlog

LOOK_S = 1.0


class PoolState(msgspec.Struct, frozen=True):
    """A pool as it was a moment ago."""

    depth: Depth
    workers: list[WorkerStatus]


class Floor:
    """Samples all pools, publishes what they are to serve, and gives this gateway's sign of life."""

    def __init__(
        self, gateway: str, snapshot: Callable[[], Snapshot], queue: Callable[[str], GatewaySide], backlog: Backlog
    ) -> None:
        self._gateway = gateway
        self._snapshot = snapshot
        self._queue = queue
        self._backlog = backlog
        self.pools: dict[str, PoolState] = {}
        self.queue_away = True

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            try:
                await self.look()
                self.queue_away = False
            except QueueUnavailable:
                self.queue_away = True
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once at every pool."""
        snapshot = self._snapshot()
        for name in snapshot.pools:
            queue = self._queue(name)
            await queue.publish_spec(spec_of(snapshot, name))
            await queue.alive(self._gateway)
            state = self.pools[name] = PoolState(await queue.depth(), await queue.workers())
            self._backlog.sampled(name, state.depth.waiting)

    def workers_of(self, model: Model) -> list[WorkerStatus]:
        """List the workers of all the model's pools."""
        states = [self.pools.get(route.pool) for route in model.routes]
        return [worker for state in states if state for worker in state.workers]


def spec_of(snapshot: Snapshot, pool: str) -> PoolSpec:
    """Say what the workers of a pool are to run."""
    entry = snapshot.pools[pool]
    models = [
        ServedModel(name=model.name, tasks=list(model.tasks), source=model.source, options=model.options)
        for model in snapshot.models.values()
        if any(route.pool == pool for route in model.routes)
    ]
    return PoolSpec(
        pool=pool,
        engine=entry.engine,
        models=sorted(models, key=lambda model: model.name),
        lease_ms=entry.lease_ms,
        attempts=entry.attempts,
    )
