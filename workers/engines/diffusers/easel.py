"""Draws what stands in the line, one sitting after the other."""

import asyncio
import time
from concurrent.futures import Executor
from functools import partial

from workers.engine import EngineError, EngineLost
from workers.engines.diffusers.drawing import Drawn
from workers.engines.diffusers.finishing import show
from workers.engines.diffusers.gallery import Gallery
from workers.engines.diffusers.job import Job
from workers.engines.diffusers.line import Line, Place
from workers.engines.diffusers.sitting import Deserted, Preview, Sitting, Step
from workers.engines.diffusers.thread import TorchThread
from workers.waiting import happens_within


class Easel:
    """The loop that picks, loads and draws. Its methods belong on the event loop."""

    def __init__(self, gallery: Gallery, line: Line[Job], torch: TorchThread, side: Executor) -> None:
        self.busy = False
        self.failure: EngineLost | None = None
        self._gallery = gallery
        self._line = line
        self._torch = torch
        self._side = side
        self._woken = asyncio.Event()
        self._began_s = 0.0
        self._last_s = 0.0  # how long the last sitting took
        self._share = 0.0  # of this sitting's steps that have been run
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to draw."""
        self._serving = asyncio.get_running_loop().create_task(self._serve())

    async def stop(self) -> None:
        """End the loop; a pipeline that still draws for nobody stops at its next step."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    @property
    def left_s(self) -> float:
        """Say how long what is drawn now has left, by its steps so far; before the first, as long as the last took."""
        if not self.busy:
            return 0.0
        spent_s = time.monotonic() - self._began_s
        return spent_s / self._share * (1 - self._share) if self._share else self._last_s

    async def draw(self, job: Job) -> Drawn:
        """Stand in the line and be drawn. When cancelled, the work ends at the next step if it is for no one else."""
        place = Place(
            job=job,
            model=job.run.request.model,
            company=job.drawing.settings,
            images=len(job.drawing.seeds),
            arrived_s=time.monotonic(),
        )
        self._line.join(place)
        self._woken.set()
        try:
            return await job.drawn
        finally:
            self._line.leave(place)

    async def _serve(self) -> None:
        while True:
            self._woken.clear()
            pick = self._line.pick(self._gallery.is_cheap, time.monotonic())
            if pick is None:
                await self._woken.wait()
            elif not pick.places:
                await happens_within(self._woken, max(0.0, pick.look_s - time.monotonic()))
            else:
                await self._sit(pick.places[0].model, [place.job for place in pick.places])

    async def _sit(self, model: str, jobs: list[Job]) -> None:
        """Draw for these, and give each what came out, or what went wrong."""
        self.busy, self._share, self._began_s = True, 0.0, time.monotonic()
        sitting = asyncio.get_running_loop().create_task(self._draw(model, jobs))
        try:
            await asyncio.wait([sitting])
        finally:
            sitting.cancel()
            self.busy, self._last_s = False, time.monotonic() - self._began_s
        error = sitting.exception()
        if isinstance(error, EngineLost):
            self.failure = error
        for at, job in enumerate(jobs):
            if job.drawn.done():
                continue
            if error is not None:
                job.drawn.set_exception(error)
            else:
                job.drawn.set_result(sitting.result()[at])

    async def _draw(self, model: str, jobs: list[Job]) -> list[Drawn]:
        pipeline = self._gallery.loaded(model)
        if pipeline is None:
            for job in jobs:
                if not job.drawn.done():
                    job.laps.turn("load")
            pipeline = await self._gallery.bring(model)
        for job in jobs:
            if not job.drawn.done():
                job.laps.turn("forward")
                job.run.began()
        while True:
            sitting = self._seat(jobs)
            most_images = self._gallery.most_images(model)
            try:
                return await self._torch.do(partial(pipeline.draw, sitting, most_images))
            except Deserted:
                return []
            except MemoryError:
                if not self._gallery.shrink(model, min(most_images, len(sitting.items()))):
                    raise EngineError("There is not enough memory to draw this. Ask for a smaller size.") from None
            self._share = 0.0
            for job in jobs:
                job.again()

    def _seat(self, jobs: list[Job]) -> Sitting:
        """Make a sitting that hears who leaves, and tells each request of its steps."""
        loop = asyncio.get_running_loop()

        def tell(told: Step | Preview) -> None:
            loop.call_soon_threadsafe(self._told, jobs, told)

        sitting = Sitting([job.drawing for job in jobs], tell)
        for at, job in enumerate(jobs):
            if job.drawn.done():
                sitting.leave(at)
            job.drawn.add_done_callback(partial(_left, sitting, at))
        return sitting

    def _told(self, jobs: list[Job], told: Step | Preview) -> None:
        if isinstance(told, Step):
            for at, images in told.images.items():
                jobs[at].step(images, told.of)
            self._share += sum(told.images.values()) / (told.of * sum(len(job.drawing.seeds) for job in jobs))
            return
        job = jobs[told.item.drawing]
        encoding = job.drawing.encoding
        job.show(asyncio.get_running_loop().run_in_executor(self._side, show, told, encoding))


def _left(sitting: Sitting, at: int, drawn: "asyncio.Future[Drawn]") -> None:
    if drawn.cancelled():
        sitting.leave(at)
