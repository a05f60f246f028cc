"""The life of a worker: read what the pool serves, load it, pull, and drain."""

import asyncio
from enum import IntEnum

import structlog

from gateway.contract.pools import PoolSpec
from gateway.queues.port import QueueUnavailable, WorkerSide
from workers.consume import Consumer
from workers.engine import Engine
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
FLUSH_S = 5.0
"""How long a worker whose engine is dead tries to say so of its requests."""


class Exit(IntEnum):
    """Why a worker ended, as its exit code."""

    DRAINED = 0
    ENGINE_LOST = 3
    SPEC_CHANGED = 4
    NOT_LOADED = 5


class Worker:
    """One worker of one pool. Set `stopping` to drain it."""

    def __init__(self, settings: WorkerSettings, queue: WorkerSide) -> None:
        self.stopping = asyncio.Event()
        self.name = settings.name or default_name(settings.pool)
        self._settings = settings
        self._queue = queue
        self._exit = Exit.DRAINED

    async def run(self) -> Exit:
        """Work until drained, or until there is nothing to work with."""
        spec = await self._first_spec()
        engine = None if spec is None else await self._make_engine(spec)
        if spec is not None and engine is not None:
            try:
                await self._work(spec, engine)
            finally:
                await engine.unload()
        log.info("worker.ended", exit=self._exit.name.lower())
        return self._exit

    async def _make_engine(self, spec: PoolSpec) -> Engine | None:
        """Import the engine; where its packages are missing say so, and wait a while before the next worker tries."""
        log.info("worker.starting", engine=spec.engine, models=[model.name for model in spec.models])
        try:
            return make_engine(spec.engine, self._settings.models_dir)
        except ImportError as error:
            log.error("worker.engine_not_installed", engine=spec.engine, missing=error.name, detail=str(error))
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

    async def _work(self, spec: PoolSpec, engine: Engine) -> None:
        settings = self._settings
        outputs = Outputs(settings.blob_dir, settings.inline_bytes)
        runner = Runner(self._queue, engine, outputs, self.name)
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
                group.create_task(consumer.beat(beat_s, lambda: standing.status(engine, runner))),
                group.create_task(consumer.hear_cancels()),
                group.create_task(self._watch_spec(spec)),
                group.create_task(self._watch_engine(engine, runner, beat_s)),
            ]
            if await self._load(spec, engine, runner, standing):
                await consumer.take(self.stopping)
                standing.draining = True
                await self._drain(runner)
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
        runner.models = standing.ready()
        log.info("worker.loaded", models={name: state.state for name, state in standing.models.items()})
        if runner.models:
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
