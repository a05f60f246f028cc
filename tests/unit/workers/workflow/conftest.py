"""Several pools on the queue's twin in memory, with real workers: those of the steps, and those of the workflows."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.blobs.local import LocalBlobs
from gateway.blobs.names import input_name
from gateway.contract.events import Ended, Event
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import Input, Media
from gateway.contract.phases import Phases
from gateway.contract.pools import EngineName, PoolSpec, ServedModel
from gateway.contract.request import Request, encode_input
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.queues.memory import MemoryQueues
from gateway.queues.port import Swept, Waiting
from workers.settings import WorkerSettings
from workers.worker import Exit, Worker

LEASE_MS = 900
WITHIN_S = 60.0
FLOWS = "flows"
"""The pool of the workflows; all others are pools of their steps."""
STEPS = "steps"
PRICE = 7


def flow(name: str, task: Task, output: str, **steps: dict[str, Any]) -> ServedModel:
    """Make a workflow as gateways tell workers of it; its models are in the pool `steps` where it says nothing else."""
    full = {
        key: step | ({"pools": {STEPS: 1}} if "model" in step and "pools" not in step else {})
        for key, step in steps.items()
    }
    return ServedModel(name=name, tasks=[task], options={"steps": full, "output": output})


class Scene:
    """Pools, their workers, a settler that looks after what is given up, and a caller."""

    def __init__(self, folder: Path) -> None:
        self.ahead_us = 0
        self.queues = MemoryQueues(lambda: time.time_ns() // 1000 + self.ahead_us)
        self.folder = folder
        self.blobs = LocalBlobs(folder)
        self.ends: dict[str, Ended] = {}
        self.running: list[tuple[Worker, asyncio.Task[Exit]]] = []
        self._settling = asyncio.create_task(self._settle())

    async def _settle(self) -> None:
        """Do what a settler does with ends, but the charging."""
        settler = self.queues.settler(idle_ms=3_600_000)
        while True:
            for pool, entry in await settler.settlements([FLOWS, STEPS, "slow"], 100, wait_s=0.05):
                for end in entry.ended:
                    if not end.parent:
                        assert end.id not in self.ends
                        self.ends[end.id] = end
                await settler.settled([(pool, entry.entry)])

    async def serve(self, pool: str, *models: ServedModel, engine: EngineName = "fake", drain_s: float = 30.0) -> None:
        """Say what a pool serves, and start a worker for it."""
        await self.queues.pool(pool).publish_spec(
            PoolSpec(pool=pool, engine=engine, models=list(models), lease_ms=LEASE_MS)
        )
        await self.start(pool, drain_s)

    async def start(self, pool: str, drain_s: float = 30.0) -> Worker:
        """Start one more worker of a pool, and wait until it is ready."""
        name = f"{pool}-{len(self.running) + 1}"
        settings = WorkerSettings(
            redis_url="",
            pool=pool,
            name=name,
            blob_url=str(self.folder),
            heartbeat_s=0.05,
            take_wait_s=0.1,
            drain_s=drain_s,
        )
        worker = Worker(settings, self.queues.worker(pool), self.queues.pool)
        self.running.append((worker, asyncio.create_task(worker.run())))
        await self.until(
            lambda: any(
                status.worker == name and status.capacity for _, status in self.queues.state(pool).workers.values()
            )
        )
        return worker

    async def submit(self, model: str, task: Task, given: Input, **fields: Any) -> str:
        """Enqueue a request to a workflow; it is kept, as asynchronous ones are."""
        made = Request(new_request_id(), 1, model, task, encode_input(given), PRICE, keep=True)
        made = msgspec.structs.replace(made, enqueued_us=self.queues.now_us(), **fields)
        await self.queues.pool(FLOWS).enqueue([Waiting(made)])
        return made.id

    async def ended(self, request_id: str) -> Ended:
        """Wait for the end of a request."""
        await self.until(lambda: request_id in self.ends)
        return self.ends[request_id]

    async def cancel(self, request_id: str) -> str:
        """Cancel a request as its gateway does."""
        return await self.queues.pool(FLOWS).cancel(
            Ended(request_id, 0, "cancelled", "cancelled_by_caller", Units(), Phases(), PRICE)
        )

    async def expire(self, pool: str) -> Swept:
        """Let the leases of a pool run out."""
        for request_id in self.queues.state(pool).leases:
            self.queues.state(pool).leases[request_id] = 0
        return await self.queues.settler().sweep(pool, 3)

    async def events(self, request_id: str) -> list[Event]:
        """Read the kept events of a request that has ended."""
        async with asyncio.timeout(WITHIN_S):
            return [event async for _, event in self.queues.pool(FLOWS).events(request_id)]

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WITHIN_S):
            while not true():
                await asyncio.sleep(0.005)

    def children(self, pool: str = STEPS) -> list[Request]:
        """Give the steps that wait or run in a pool."""
        return list(self.queues.state(pool).jobs.values())

    def files(self) -> list[str]:
        """Name all files of the blob store."""
        return sorted(path.name for path in self.folder.rglob("*.*") if path.is_file())

    async def picture(self, width: int = 64, height: int = 48) -> Media:
        """Put a picture into the blob store, as a caller's input."""
        from PIL import Image

        file = BytesIO()
        Image.new("RGB", (width, height), (200, 80, 40)).save(file, "PNG")
        name = input_name(new_request_id(), 0, "image/png")
        size = await self.blobs.put(name, file.getvalue())
        return Media(blob=name, media_type="image/png", size_bytes=size, width=width, height=height)

    async def close(self) -> None:
        """Stop all workers."""
        for worker, _ in self.running:
            worker.stopping.set()
        await asyncio.gather(*(task for _, task in self.running), return_exceptions=True)
        self._settling.cancel()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Answer pools without workers; those that a test starts are stopped."""
    made = Scene(tmp_path / "blobs")
    yield made
    await made.close()
