"""One request inside of the engine: what it is to draw, where its time goes, and what has been drawn of it."""

import asyncio
import time

from gateway.contract.events import ImageDelta
from gateway.contract.phases import Phases
from workers.engine import Run
from workers.engines.diffusers.drawing import Drawing, Drawn


class Laps:
    """Shares the time of a request among its phases without a gap: each lap counts from the end of the one before."""

    def __init__(self, phases: Phases) -> None:
        self.phase = "preprocess"
        """Where the request is now."""
        self._phases = phases
        self._since = time.perf_counter_ns()
        self._transferred_us = phases.transfer_us

    def turn(self, phase: str) -> None:
        """Count the time since the last turn as the phase that ends now, less what was counted as transfer."""
        now, phases = time.perf_counter_ns(), self._phases
        transferred_us, self._transferred_us = phases.transfer_us - self._transferred_us, phases.transfer_us
        field = self.phase + "_us"
        spent_us = max(0, (now - self._since) // 1000 - transferred_us)
        setattr(phases, field, getattr(phases, field) + spent_us)
        self.phase, self._since = phase, now


class Job:
    """A request that waits for its turn, or is drawn. On the event loop only."""

    def __init__(self, run: Run, drawing: Drawing, laps: Laps) -> None:
        self.run = run
        self.drawing = drawing
        self.laps = laps
        self.drawn: asyncio.Future[Drawn] = asyncio.get_running_loop().create_future()
        """What came out; cancelled once nobody wants it."""
        self.previews: list[asyncio.Future[ImageDelta]] = []
        """Those that are being encoded, or have been sent."""
        self._steps = 0

    def step(self, images: int, of: int) -> None:
        """Count a step of so many images, each of which takes `of`.

        No more steps are counted than were asked for: some schedulers, such as PNDM, call the model once more.
        """
        if self.drawn.done():
            return
        self._steps += images
        count, asked = len(self.drawing.seeds), self.drawing.settings.steps
        whole = self._steps // count if self.drawing.in_parts else self._steps
        self.run.units.steps = min(whole, asked if self.drawing.in_parts else asked * count)
        self.run.progress(min(1.0, self._steps / (count * of)))

    def again(self) -> None:
        """Forget what was drawn: it is drawn once more, fewer at once."""
        self._steps = 0

    def show(self, preview: "asyncio.Future[ImageDelta]") -> None:
        """Send a preview when it is encoded, while somebody still waits."""
        preview.add_done_callback(self._shown)
        self.previews.append(preview)

    def _shown(self, preview: "asyncio.Future[ImageDelta]") -> None:
        if not self.drawn.cancelled() and not preview.cancelled() and preview.exception() is None:
            self.run.emit(preview.result())
