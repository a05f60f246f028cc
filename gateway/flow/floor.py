"""What one gateway knows of the pools' floors, sampled once a second: workers, depths; and what it tells them."""

import asyncio
from collections.abc import Callable

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.catalog.workflows import options_for_worker
from gateway.contract.pools import PoolSpec, ServedModel, Target, UpstreamSpec, WorkerStatus
from gateway.queues.histories import Histories
from gateway.queues.port import Depth, GatewaySide, QueueUnavailable
from gateway.routing.backlog import Backlog
from gateway.routing.estimate import Estimates

LOOK_S = 1.0


class PoolState(msgspec.Struct, frozen=True):
    """A pool as it was a moment ago."""

    depth: Depth
    workers: list[WorkerStatus]


class Floor:
    """Samples all pools, publishes what they are to serve, and gives this gateway's sign of life."""

    def __init__(
        self,
        gateway: str,
        snapshot: Callable[[], Snapshot],
        queue: Callable[[str], GatewaySide],
        backlog: Backlog,
        estimates: Estimates,
        histories: Histories,
    ) -> None:
        self._gateway = gateway
        self._snapshot = snapshot
        self._queue = queue
        self._backlog = backlog
        self._estimates = estimates
        self._histories = histories
        self._specs: dict[str, PoolSpec] = {}
        self._known: Snapshot | None = None
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
        if snapshot is not self._known:
            self._specs = {name: spec_of(snapshot, name) for name in snapshot.pools}
            self._known = snapshot
        for name in snapshot.pools:
            queue = self._queue(name)
            await queue.publish_spec(self._specs[name])
            await queue.alive(self._gateway)
            state = self.pools[name] = PoolState(await queue.depth(), await queue.workers())
            self._backlog.sampled(name, state.depth.waiting)
            self._estimates.outlook.sampled(name, state.workers)
            self._estimates.depth(name, state.depth.waiting, state.depth.leased)
        self._estimates.sampled(await self._histories.read(list(snapshot.pools)))

    def workers_of(self, model: Model) -> list[WorkerStatus]:
        """List the workers of all the model's pools."""
        states = [self.pools.get(route.pool) for route in model.routes]
        return [worker for state in states if state for worker in state.workers]


def spec_of(snapshot: Snapshot, pool: str) -> PoolSpec:
    """Say what the workers of a pool are to run."""
    entry = snapshot.pools[pool]
    models = [
        ServedModel(
            name=model.name,
            tasks=list(model.tasks),
            source=model.source,
            options=options_for_worker(model, snapshot.models) if entry.engine == "workflow" else model.options,
            targets=_targets(model, pool),
        )
        for model in snapshot.models.values()
        if any(route.pool == pool for route in model.routes)
    ]
    return PoolSpec(
        pool=pool,
        engine=entry.engine,
        models=sorted(models, key=lambda model: model.name),
        lease_ms=entry.lease_ms,
        attempts=entry.attempts,
        upstreams=[
            UpstreamSpec(
                name=upstream.name,
                protocol=upstream.protocol,
                url=upstream.url,
                timeout_s=upstream.timeout_s,
                concurrency=upstream.concurrency,
            )
            for upstream in sorted(snapshot.upstreams.values(), key=lambda one: one.name)
            if upstream.pool == pool
        ],
    )


def _targets(model: Model, pool: str) -> list[Target]:
    return [
        Target(
            upstream=route.upstream,
            model=route.model,
            order=route.order,
            weight=route.weight,
            fields=route.fields,
            fixed=route.fixed,
        )
        for route in model.routes
        if route.upstream and route.pool == pool
    ]
