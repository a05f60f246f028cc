"""What an engine is: the thing inside a worker that executes requests.

A worker makes one engine, loads its models, then calls `run` for each request it has taken, as many at
once as `capacity` allows. The engine counts units and phases on the `Run` as it goes, so that a request
which is cancelled half-way is charged for what was produced.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from gateway.blobs.store import BlobStore
from gateway.contract.events import AudioDelta, Delta, Frame, ImageDelta, Output, Progress, Step
from gateway.contract.inputs import Input, Media, MediaSource
from gateway.contract.phases import Phases
from gateway.contract.pools import ModelState, PoolSpec, ServedModel, UpstreamState
from gateway.contract.request import Request
from gateway.contract.states import Reason
from gateway.contract.units import Units
from gateway.net.addresses import Allowed
from gateway.queues.port import GatewaySide


class EngineError(Exception):
    """The engine failed on this request, and on no other. The text is shown to the caller.

    `reason` is what the request ends with; `final` says that no other route could do better.
    """

    def __init__(self, text: str = "", *, reason: Reason = "engine_error", final: bool = False) -> None:
        super().__init__(text)
        self.reason: Reason = reason
        self.final = final


class RefusedInput(Exception):
    """The engine finds this input unusable: `failed`, `refused_by_engine`. The text tells the caller what to change."""


class EngineLost(Exception):
    """The engine is dead. Its requests fail with `engine_lost`, and the worker exits so that it is started afresh."""


Read = Callable[[Media], Awaitable[bytes]]
"""Reads a media file of the caller. Raises EngineError where it is gone."""

Sink = Callable[[Request, Frame], None]
"""Where the events of runs go."""

Discard = Callable[[str, int, Output | None], None]
"""Removes the files of an attempt that nobody needs: request id, attempt, output."""

Report = Callable[[str, ModelState], None]
"""Told how the named model stands while it loads."""


class Run:
    """One attempt at one request, as its engine sees it.

    `units` and `phases` are the engine's to count up; `queue` and `store` are the worker's phases. `seq` of the frames
    counts from 0 without a gap, and `deltas` is how many there were. `steps` are those of a workflow. `gpu_us` is its
    share of the worker's time, known at its end. `stopped` says why the run was cancelled: after `lost` and
    `given_back` another attempt goes on."""

    __slots__ = (
        "attempt",
        "deltas",
        "forward_began",
        "gpu_us",
        "input",
        "phases",
        "reader",
        "request",
        "sink",
        "steps",
        "stopped",
        "units",
    )

    def __init__(self, request: Request, given: Input, attempt: int, sink: Sink, reader: Read | None = None) -> None:
        self.request = request
        self.input = given
        self.attempt = attempt
        self.units = Units()
        self.phases = Phases()
        self.deltas = 0
        self.forward_began = False
        self.gpu_us = 0
        self.steps: list[Step] = []
        self.stopped: Reason | Literal["lost", "given_back", ""] = ""
        self.sink = sink
        self.reader = reader

    async def read(self, source: MediaSource) -> bytes:
        """Read a media file of the input, counted as the transfer phase. Raises EngineError where it is gone."""
        if not isinstance(source, Media) or self.reader is None:
            raise EngineError("A media input was not staged.")
        with self.phases.timed("transfer"):
            return await self.reader(source)

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

        Sound and previews go to a caller who streams them and never into the event log: media are not for Redis.
        What a workflow's step produces goes nowhere before its end: nobody watches but the workflow.
        """
        request = self.request
        if type(delta) is AudioDelta or type(delta) is ImageDelta:
            if not request.stream:
                return
            if request.keep:
                request = msgspec.structs.replace(request, keep=False)
        elif request.parent or not (request.stream or request.keep):
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


@runtime_checkable
class Budgeted(Protocol):
    """An engine of several models that keeps within a memory budget: it loads on demand, and lets models leave."""

    def keep_within(self, memory_bytes: int) -> None:
        """Be told the budget, 0 for none. Called once, before `load`."""
        ...


@runtime_checkable
class Concluding(Protocol):
    """An engine that keeps something of a request until its end stands."""

    def concluded(self, request_id: str, attempt: int, *, fenced: bool) -> None:
        """Hear that the end of a run stands, or that it was fenced and another attempt has taken its place."""
        ...


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How an upstream is entered: the operator's key, and an address in place of the catalog's."""

    key: str = ""
    url: str = ""

    def __repr__(self) -> str:
        """Show no key."""
        return f"Access(key={'set' if self.key else 'unset'}, url={self.url!r})"


@runtime_checkable
class Calling(Concluding, Protocol):
    """An engine that calls upstreams."""

    def connect(
        self, spec: PoolSpec, access: Mapping[str, Access], store: BlobStore, allowed: Allowed, worker: str
    ) -> None:
        """Be told the upstreams of the pool, their keys, and where to note jobs. Called once, before `load`.

        `access` goes by the upstream's name as settings spell it; `allowed` is what results may be copied from beside
        public addresses."""
        ...

    def upstreams(self) -> dict[str, UpstreamState]:
        """Say how the upstreams stand, as this worker's own traffic has shown."""
        ...


@runtime_checkable
class Composing(Concluding, Protocol):
    """An engine whose requests are made of requests to other pools."""

    def attach(
        self,
        queue: Callable[[str], GatewaySide],
        store: Callable[[Run, Output], Awaitable[Output]],
        discard: Discard,
    ) -> None:
        """Be told the way to the queues of other pools, and to the blob store. Called once, before `load`."""
        ...
