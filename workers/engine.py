"""What an engine is: the thing inside a worker that executes requests.

A worker makes one engine, loads its models, then calls `run` for each request it has taken, as many at
once as `capacity` allows. The engine counts units and phases on the `Run` as it goes, so that a request
which is cancelled half-way is charged for what was produced.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import msgspec

from gateway.contract.events import AudioDelta, Delta, Frame, Output, Progress
from gateway.contract.inputs import Input
from gateway.contract.phases import Phases
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from gateway.contract.units import Units


class EngineError(Exception):
    """The engine failed on this request, and on no other: `failed`, `engine_error`. The text is shown to the caller."""


class RefusedInput(Exception):
    """The engine finds this input unusable: `failed`, `refused_by_engine`. The text tells the caller what to change."""


class EngineLost(Exception):
    """The engine is dead. Its requests fail with `engine_lost`, and the worker exits so that it is started afresh."""


Sink = Callable[[Request, Frame], None]
"""Where the events of runs go."""

Report = Callable[[str, ModelState], None]
"""Told how the named model stands while it loads."""


class Run:
    """One attempt at one request, as its engine sees it.

    `units` and `phases` are the engine's to count up; `queue` and `store` are the worker's phases. `seq`
    of the frames counts from 0 without a gap, and `deltas` is how many there were.
    """

    __slots__ = ("attempt", "deltas", "forward_began", "input", "phases", "request", "sink", "units")

    def __init__(self, request: Request, given: Input, attempt: int, sink: Sink) -> None:
        self.request = request
        self.input = given
        self.attempt = attempt
        self.units = Units()
        self.phases = Phases()
        self.deltas = 0
        self.forward_began = False
        self.sink = sink

    @property
    def watched(self) -> bool:
        """Whether text deltas and progress go anywhere; where not, an engine need not make them."""
        return self.request.stream or self.request.keep

    @property
    def heard(self) -> bool:
        """Whether audio deltas go anywhere: only to a caller who streams, media never go to the event log."""
        return self.request.stream

    def began(self) -> None:
        """Note that the forward phase has begun: from here on a cancelled request may cost its full price."""
        self.forward_began = True

    def emit(self, delta: Delta) -> None:
        """Send the next piece of output to whoever watches. Cheap; on the event loop only.

        Sound goes to a caller who streams it and never into the event log: media are not for Redis.
        """
        request = self.request
        if type(delta) is AudioDelta:
            if not request.stream:
                return
            if request.keep:
                request = msgspec.structs.replace(request, keep=False)
        elif not request.stream and not request.keep:
            return
        seq = self.deltas
        self.deltas = seq + 1
        self.sink(request, Frame(request.id, self.attempt, seq, delta))

    def progress(self, fraction: float) -> None:
        """Say how far the attempt is, from 0 to 1. On the event loop only."""
        if self.watched:
            self.sink(self.request, Frame(self.request.id, self.attempt, -1, Progress(fraction)))


class Engine(Protocol):
    """What executes requests. Its class is made with the folder of local models: `Class(models_dir)`."""

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Load the models and report each as `ready` or `failed`; one that fails does not stop the others."""
        ...

    def capacity(self) -> int:
        """Say how many more requests could start right now: what the worker takes at most."""
        ...

    def run(self, run: Run) -> Output | Coroutine[Any, Any, Output]:
        """Execute one request and answer its whole output; usually an `async def`.

        What the engine has at once it may return without a coroutine, which spares a task. When the task
        is cancelled the engine stops its work within one step, and counts no more units once the
        CancelledError leaves `run`. Raises EngineError, RefusedInput or EngineLost.
        """
        ...

    def failure(self) -> Exception | None:
        """Say why the engine is dead, None while it lives. Asked with each heartbeat."""
        ...

    async def unload(self) -> None:
        """Free what the engine holds. Called once, after the last run has ended."""
        ...
