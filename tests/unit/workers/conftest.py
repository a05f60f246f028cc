"""A pool on the queue's twin in memory: a gateway, a settler, and real workers in one event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.contract.events import Ended, Frame
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ChatInput, Input
from gateway.contract.inputs.text import Message
from gateway.contract.phases import Phases
from gateway.contract.pools import EngineName, ModelState, PoolSpec, ServedModel, WorkerStatus
from gateway.contract.request import Request, encode_input
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.queues.memory import MemoryQueues, MemoryWorker
from gateway.queues.port import Beat, Move, QueueUnavailable, Swept, Taken, Waiting, WorkerSide
from gateway.queues.replies import Replies
from workers.settings import WorkerSettings
from workers.worker import Exit, Worker

POOL = "p"
LEASE_MS = 600_000
WITHIN_S = 60.0

CHAT = ServedModel(name="chat", tasks=["chat"])
STREAM = ServedModel(name="stream", tasks=["chat"], options={"tokens": 20, "interval_ms": 10})
LONG = ServedModel(name="long", tasks=["chat"], options={"tokens": 5000, "interval_ms": 10})
SLOW = ServedModel(name="slow", tasks=["chat"], options={"work_ms": 200, "capacity": 2})


class Unsteady(MemoryWorker):
    """A worker's side of the queue whose Redis goes away and comes back."""

    away = False
    takes_meanwhile = False
    finishes = 0
    emits = 0
    leaves_at: int | None = None
    """The emission at which Redis goes away."""

    async def take(self, most: int, *, wait_s: float) -> list[Taken]:
        if not self.takes_meanwhile:
            self._look()
        return await super().take(most, wait_s=wait_s)

    async def beat(self, request_ids: Sequence[str], status: WorkerStatus) -> Beat:
        self._look()
        return await super().beat(request_ids, status)

    async def finish(self, ended: Sequence[Ended]) -> list[str]:
        self.finishes += 1
        self._look()
        return await super().finish(ended)

    async def hand_over(self, moves: Sequence[Move]) -> list[str]:
        self._look()
        return await super().hand_over(moves)

    async def emit(self, frames: Sequence[tuple[Request, Frame]]) -> None:
        self.emits += 1
        self.away = self.away or self.emits == self.leaves_at
        self._look()
        await super().emit(frames)

    async def give_back(self, request_ids: Sequence[str]) -> None:
        self._look()
        await super().give_back(request_ids)

    def _look(self) -> None:
        if self.away:
            raise QueueUnavailable("away on purpose")


class Pool:
    """One pool, its gateway `gw`, what that heard, and what awaits settlement."""

    def __init__(self, blob_dir: Path) -> None:
        self.ahead_us = 0
        self.queues = MemoryQueues(lambda: time.time_ns() // 1000 + self.ahead_us)
        self.queue = self.queues.pool(POOL)
        self.state = self.queues.state(POOL)
        self.settler = self.queues.settler(idle_ms=LEASE_MS)
        self.blob_dir = blob_dir
        self.frames: list[Frame] = []
        self.replies = Replies(self.queues.channels, "gw", self.frames.append, lambda: None)
        self.running: list[tuple[Worker, asyncio.Task[Exit]]] = []

    def unsteady(self) -> Unsteady:
        """Give a worker's side whose Redis can go away."""
        return Unsteady(self.queues, self.state)

    async def serve(self, *models: ServedModel, engine: EngineName = "fake") -> None:
        """Say what the pool serves."""
        spec = PoolSpec(pool=POOL, engine=engine, models=list(models), lease_ms=LEASE_MS)
        await self.queue.publish_spec(spec)

    def start(self, queue: WorkerSide | None = None, **settings: Any) -> tuple[Worker, asyncio.Task[Exit]]:
        """Start a worker with a quick heartbeat."""
        number = len(self.running) + 1
        given = {"name": f"w{number}", "heartbeat_s": 0.05, "take_wait_s": 0.1, "drain_s": 30.0} | settings
        wanted = WorkerSettings(redis_url="", pool=POOL, blob_url=str(self.blob_dir), **given)
        worker = Worker(wanted, queue or self.queues.worker(POOL), self.queues.pool)
        task = asyncio.create_task(worker.run())
        self.running.append((worker, task))
        return worker, task

    async def submit(self, model: str, given: Input | str = "hello", **fields: Any) -> str:
        """Enqueue one request; a text is the prompt of a chat."""
        return (await self.submit_all([(model, given)], **fields))[0]

    async def submit_all(self, wanted: Sequence[tuple[str, Input | str]], **fields: Any) -> list[str]:
        """Enqueue requests in one command."""
        requests = [self.request(model, given, **fields) for model, given in wanted]
        await self.queue.enqueue([Waiting(request) for request in requests])
        return [request.id for request in requests]

    def request(self, model: str, given: Input | str, task: Task = "chat", **fields: Any) -> Request:
        """Make a request of the gateway `gw`."""
        if isinstance(given, str):
            given = ChatInput(messages=[Message(role="user", content=given)])
        made = Request(new_request_id(), 1, model, task, encode_input(given), 7, "gw")
        return msgspec.structs.replace(made, enqueued_us=self.queues.now_us(), **fields)

    async def ended(self, count: int = 1) -> list[Ended]:
        """Wait for so many terminal events in the settlements, and give all there are."""
        found: list[Ended] = []
        async with asyncio.timeout(WITHIN_S):
            while len(found) < count:
                for pool, entry in await self.settler.settlements([POOL], 1000, wait_s=0.1):
                    found += entry.ended
                    await self.settler.settled([(pool, entry.entry)])
        return found

    async def cancel(self, request_id: str) -> str:
        """Cancel a request as its gateway does."""
        end = Ended(request_id, 0, "cancelled", "cancelled_by_caller", Units(), Phases(), 7)
        return await self.queue.cancel(end)

    async def expire_leases(self) -> Swept:
        """Let all leases run out, and sweep."""
        self.ahead_us += LEASE_MS * 1000 + 1000
        return await self.settler.sweep(POOL, 3)

    def frames_of(self, request_id: str) -> list[Frame]:
        """Give what the gateway heard of a request."""
        return [frame for frame in self.frames if frame.id == request_id]

    async def until_heard(self, request_id: str, count: int) -> None:
        """Wait for so many frames of a request."""
        await self.until(lambda: len(self.frames_of(request_id)) >= count)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WITHIN_S):
            while not true():
                await asyncio.sleep(0.002)

    async def status(self, name: str = "w1") -> WorkerStatus | None:
        """Give a worker's latest word, however old it is."""
        return next((status for _, status in self.state.workers.values() if status.worker == name), None)

    async def until_ready(self, *names: str) -> None:
        """Wait until all models are ready on these workers, on `w1` by default."""
        async with asyncio.timeout(WITHIN_S):
            for name in names or ("w1",):
                while not _all_ready(await self.status(name)):
                    await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Stop all workers."""
        for worker, _ in self.running:
            worker.stopping.set()
        await asyncio.gather(*(task for _, task in self.running), return_exceptions=True)


def _all_ready(status: WorkerStatus | None) -> bool:
    ready = ModelState(state="ready")
    return status is not None and all(state == ready for state in status.models.values())


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    """Answer a pool without workers; those that a test starts are stopped."""
    made = Pool(tmp_path / "blobs")
    await made.replies.open()
    yield made
    await made.stop()
    await made.replies.close()
