"""One request on its way through the engine: its clock, and how it is told to stop."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from gateway.contract.events import AudioDelta
from workers.engine import Run

Samples = npt.NDArray[np.float32]


class Stopped(Exception):
    """The request was cancelled; its thread unwinds."""


class Job:
    """What a model's thread knows of a request. `stopped`, set from the event loop, ends it at the next step.

    Every moment belongs to one phase, so that the phases add up to the time that the request took. It is made on
    the event loop and then belongs to one thread at a time.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.stopped = False
        self.sound: Samples = np.zeros(0, np.float32)
        """The sound that came with the request: one channel at 16 kHz."""
        self._loop = asyncio.get_running_loop()
        self._phase = "preprocess"
        self._since_ns = time.perf_counter_ns()

    def check(self) -> None:
        """Raise Stopped where the request was cancelled."""
        if self.stopped:
            raise Stopped

    def enter(self, phase: str) -> str:
        """Count the time until now to the phase that was, and go on in another; answers the one that was."""
        before, now_ns = self._phase, time.perf_counter_ns()
        spent_us = (now_ns - self._since_ns) // 1000
        field, phases = before + "_us", self.run.phases
        setattr(phases, field, getattr(phases, field) + spent_us)
        self._since_ns += spent_us * 1000
        self._phase = phase
        if phase == "forward":
            self.run.began()
        return before

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Count the block to a phase, and what follows to the one before."""
        before = self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)

    @property
    def heard(self) -> bool:
        """Whether sound goes to someone as it is made."""
        return self.run.heard

    def send(self, data: bytes) -> None:
        """Send the next bytes of the file to whoever listens; from the thread."""
        self._loop.call_soon_threadsafe(self.run.emit, AudioDelta(data))

    def progress(self, fraction: float) -> None:
        """Say how far the request is; from the thread."""
        if self.run.watched and not self.stopped:
            self._loop.call_soon_threadsafe(self.run.progress, min(1.0, fraction))
