"""The life of a worker: read what the pool serves, load it, pull, and drain."""

import asyncio
from collections.abc import Callable
from enum import IntEnum

import structlog

from gateway.blobs.choice import open_blobs
from gateway.contract.pools import PoolSpec, WorkerStatus
from gateway.queues.port import GatewaySide, QueueUnavailable, WorkerSide
from workers.consume import Consumer
from workers.ends import Place
from workers.engine import Budgeted, Calling, Composing, Engine
from workers.engines import make_engine
from workers.outputs import Outputs
from workers.run import Runner
from workers.settings import WorkerSettings
from workers.standing import Standing, default_name
from workers.waiting import Backoff, happens_within

log = structlog.get_logger()

SPEC_POLL_S = 0.2
"""Between two looks for the specification of the pool, while no gateway has published one."""
FAILED_S = 30.0
"""How long a worker shows that no model could be loaded, before it exits to try again."""
MIB = 1024 * 1024
FLUSH_S = 5.0
"""How long a worker whose engine is dead tries to say so of its requests."""


class Exit(IntEnum):
    """Why a worker ended, as its exit code."""

    DRAINED = 0
    ENGINE_LOST = 3
    SPEC_CHANGED = 4
    NOT_LOADED = 5


class Worker:
    """One worker of one pool. Set `stopping` to drain it. `pools` gives the queues that a workflow's steps go to."""

    def __init__(self, settings: WorkerSettings, queue: WorkerSide, pools: Callable[[str], GatewaySide]) -> None:
        self.stopping = asyncio.Event()
        self.name = settings.name or default_name(settings.pool)
        self._settings = settings
        self._queue = queue
        self._pools = pools
        self._exit = Exit.DRAINED

    async def run(self) -> Exit:
        """Work until drained, or until there is nothing to work with."""
        spec = await self._first_spec()
        engine = None if spec is None else await self._make_engine(spec)
        if spec is not None and engine is not None:
            store = open_blobs(self._settings.blobs)
            outputs = Outputs(store, self._settings.inline_bytes)
            if isinstance(engine, Calling):
                engine.connect(spec, self._settings.upstreams, store, self._settings.allowed, self.name)
            try:
                await self._work(spec, engine, outputs)
            finally:
                await engine.unload()
                await outputs.close()
        log.info("worker.ended", exit=self._exit.name.lower())
        return self._exit

    async def _make_engine(self, spec: PoolSpec) -> Engine | None:
        """Import the engine; where its packages are missing say so, and wait a while before the next worker tries."""
        log.info("worker.starting", engine=spec.engine, models=[model.name for model in spec.models])
        try:
            engine = make_engine(spec.engine, self._settings.models_dir)
        except ImportError as error:
            log.error("worker.engine_not_installed", engine=spec.engine, missing=error.name, detail=str(error))
        else:
            if isinstance(engine, Budgeted):
                engine.keep_within(self._settings.memory_mb * MIB)
            return engine
        if not await happens_within(self.stopping, FAILED_S):
            self._exit = Exit.NOT_LOADED
        return None

    async def _first_spec(self) -> PoolSpec | None:
        """Wait until a gateway says what the pool serves; None when told to stop before."""
        backoff = Backoff("spec.retry")
        while not self.stopping.is_set():
            try:
                spec = await self._queue.spec()
            except QueueUnavailable as error:
                await backoff.pause(error)
                continue
            if spec is not None:
                return spec
            await happens_within(self.stopping, SPEC_POLL_S)
        return None

    async def _work(self, spec: PoolSpec, engine: Engine, outputs: Outputs) -> None:
        settings = self._settings
        if isinstance(engine, Composing):
            engine.attach(self._pools, outputs.store, outputs.discard)
        runner = Runner(self._queue, engine, outputs, Place(self.name, spec.pool))
        standing = Standing(self.name, spec)
        consumer = Consumer(
            self._queue,
            engine,
            runner,
            attempts=spec.attempts,
            max_concurrency=settings.max_concurrency,
            take_wait_s=settings.take_wait_s,
        )
        beat_s = min(settings.heartbeat_s, spec.lease_ms / 3000)
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(runner.outbox.send()),
                group.create_task(
                    consumer.beat(beat_s, lambda: standing.status(engine, runner, told_off=consumer.told_off))
                ),
                group.create_task(consumer.hear_cancels()),
                group.create_task(self._watch_spec(spec)),
                group.create_task(self._watch_engine(engine, runner, beat_s)),
            ]
            if await self._load(spec, engine, runner, standing):
                await consumer.take(self.stopping)
                standing.draining = True
                await self._drain(runner)
                await self._take_leave(standing.status(engine, runner))
            for task in background:
                task.cancel()

    async def _load(self, spec: PoolSpec, engine: Engine, runner: Runner, standing: Standing) -> bool:
        """Load the models; True when there is something to serve and nobody has said stop meanwhile."""
        loading = asyncio.create_task(engine.load(spec.models, standing.report))
        stopping = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not loading.done():
            loading.cancel()
            await asyncio.wait({loading})
            return False
        loading.result()
        standing.loaded()
        runner.models = standing.ready()
        log.info("worker.loaded", models={name: state.state for name, state in standing.models.items()})
        if runner.models or standing.is_unset:
            return True
        if not await happens_within(self.stopping, FAILED_S):
            self._exit = Exit.NOT_LOADED
        return False

    async def _drain(self, runner: Runner) -> None:
        log.info("worker.draining", running=runner.running)
        if self._exit is Exit.ENGINE_LOST:
            runner.stop_all("engine_lost")
            limit_s = FLUSH_S
        else:
            limit_s = self._settings.drain_s
            await runner.give_back()
        try:
            async with asyncio.timeout(limit_s + FLUSH_S):
                await runner.drain(limit_s)
        except TimeoutError:
            log.error("worker.not_flushed", held=len(runner.held))

    async def _take_leave(self, status: WorkerStatus) -> None:
        """Say with a last heartbeat that nothing runs here any more: whoever looks knows silence from a crash."""
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._queue.beat([], status)
        except (QueueUnavailable, TimeoutError):
            log.info("worker.left_silently")

    async def _watch_spec(self, spec: PoolSpec) -> None:
        """Drain when the pool is to serve something else: the next worker loads it."""
        backoff = Backoff("spec.retry")
        while True:
            await asyncio.sleep(self._settings.spec_s)
            try:
                current = await self._queue.spec()
            except QueueUnavailable as error:
                await backoff.pause(error)
                continue
            backoff.reset()
            if current is not None and current != spec:
                log.info("worker.spec_changed")
                self._stop(Exit.SPEC_CHANGED)

    async def _watch_engine(self, engine: Engine, runner: Runner, every_s: float) -> None:
        """Stop when the engine is dead, whether a request or its own word says so."""
        while True:
            failure = engine.failure()
            if failure is not None or runner.engine_lost.is_set():
                log.error("worker.engine_lost", error=type(failure).__name__, detail=str(failure or ""))
                self._stop(Exit.ENGINE_LOST)
                runner.stop_all("engine_lost")
                return
            await happens_within(runner.engine_lost, every_s)

    def _stop(self, why: Exit) -> None:
        if not self.stopping.is_set() or why is Exit.ENGINE_LOST:
            self._exit = why
        self.stopping.set()
