"""What a worker sees of diffusers: several models, of which the memory holds some, and requests drawn together."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway.contract.events import Output
from gateway.contract.inputs import MEDIA_FIELDS
from gateway.contract.pools import ServedModel
from workers.engine import RefusedInput, Report, Run
from workers.engines.diffusers.drawing import Drawing
from workers.engines.diffusers.easel import Easel
from workers.engines.diffusers.finishing import finish
from workers.engines.diffusers.gallery import Gallery
from workers.engines.diffusers.job import Job, Laps
from workers.engines.diffusers.line import Limits, Line, room
from workers.engines.diffusers.tasks import TASKS, Files
from workers.engines.diffusers.thread import TorchThread

SIDE_THREADS = 2
"""Threads that decode what callers send and encode what was drawn, while torch works on."""


class DiffusersEngine:
    """Draws images and video. Torch works in a thread of its own; files are read and written in two others."""

    def __init__(self, models_dir: Path) -> None:
        self._torch = TorchThread()
        self._side = ThreadPoolExecutor(SIDE_THREADS, thread_name_prefix="media")
        self.gallery = Gallery(models_dir, self._torch)
        self._line: Line[Job] = Line(self._limits)
        self._easel = Easel(self.gallery, self._line, self._torch, self._side)
        self._preparing = 0

    def keep_within(self, memory_bytes: int) -> None:
        """Set the memory that the models may take together; 0 is no limit."""
        self.gallery.shelf.budget_bytes = memory_bytes

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Load models in their order while they fit the budget; the others come when they are asked for."""
        await self.gallery.open(models, report)
        self._easel.start()

    def capacity(self) -> int:
        """Say how many more requests to take: what can be drawn together next, or is to be chosen from."""
        names = self.gallery.names
        return room(
            most_images=max((self.gallery.most_images(name) for name in names), default=0),
            models=len(names),
            waiting=len(self._line) + self._preparing,
            left_s=self._easel.left_s,
        )

    @property
    def busy(self) -> bool:
        """Whether something is drawn now."""
        return self._easel.busy

    def failure(self) -> Exception | None:
        """Say that the GPU has failed: it works for no one until the process is started afresh."""
        return self._easel.failure

    async def unload(self) -> None:
        """Stop, and forget the models."""
        await self._easel.stop()
        self.gallery.close()
        self._torch.close()
        self._side.shutdown(wait=False, cancel_futures=True)

    async def run(self, run: Run) -> Output:
        """Draw what one request wants. Raises RefusedInput, EngineError or EngineLost."""
        laps = Laps(run.phases)
        try:
            job = Job(run, await self._prepare(run), laps)
            laps.turn("queue")
            drawn = await self._easel.draw(job)
            laps.turn("postprocess")
            await asyncio.gather(*job.previews)
            loop = asyncio.get_running_loop()
            finished = await loop.run_in_executor(self._side, finish, run.input, job.drawing, drawn)
        finally:
            laps.turn("postprocess")
        units = finished.units
        run.units.images, run.units.pixels, run.units.video_ms = units.images, units.pixels, units.video_ms
        return finished.output

    async def _prepare(self, run: Run) -> Drawing:
        """Read the input's files and decode them."""
        task = run.request.task
        adapter = TASKS.get(task)
        if adapter is None or not self.gallery.offers(run.request.model, task) or type(run.input) is not adapter.takes:
            raise RefusedInput(f"This model does not do the task {task}.")
        self._preparing += 1
        try:
            files = await _read(run)
            if not files:
                return adapter.draw(run.input, files)
            return await asyncio.get_running_loop().run_in_executor(self._side, adapter.draw, run.input, files)
        finally:
            self._preparing -= 1

    def _limits(self, name: str) -> Limits:
        return Limits(self.gallery.most_images(name), self.gallery.entry(name).options.batch_wait_ms / 1000)


async def _read(run: Run) -> Files:
    """Read the files of all media fields."""
    files: Files = {}
    for name in MEDIA_FIELDS[type(run.input)]:
        value = getattr(run.input, name)
        if value is not None:
            sources = value if isinstance(value, list) else [value]
            files[name] = [await run.read(source) for source in sources]
    return files
