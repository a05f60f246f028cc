"""What a protocol is: how the upstreams of one kind are spoken to. One small file for each in `protocols/`.

A protocol knows wire shapes and nothing else: retries, fallback, health, limits, the storing of a job's id and the
copying of results are in the other files of this package. It sends only what it names itself: fields by allow-list,
addresses and headers from the catalog and the settings, never from a caller. It takes results in with `call.parcels`,
which measure them; the units of media outputs are counted from that when it has answered, so it counts only what
cannot be seen in its output.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from gateway.contract.events import Output
from gateway.contract.pools import Target, UpstreamSpec
from gateway.contract.states import Reason
from workers.engine import EngineError, Run
from workers.engines.upstream.answer import Answer
from workers.engines.upstream.failures import UpstreamFailed
from workers.engines.upstream.link import Link
from workers.engines.upstream.media import Parcels

__all__ = ["Call", "Direct", "Finding", "Job", "Jobs", "Preparing", "UpstreamFailed", "Wire"]


class Call:
    """One attempt at one target: what a protocol works with.

    `run` has the request and its input, and takes units and deltas; `cost_nanos`, `estimated` and `job` are the
    protocol's to set where the upstream says so. `reference` is our own name for what is bought, for upstreams that
    take one: no two purchases have the same. `kept` is what a protocol has in hand from one step of a job to the next,
    and never stored.
    """

    __slots__ = (
        "cost_nanos",
        "estimated",
        "job",
        "kept",
        "link",
        "parcels",
        "pool",
        "reference",
        "run",
        "taken",
        "target",
        "upstream",
    )

    def __init__(
        self, run: Run, target: Target, upstream: UpstreamSpec, link: Link, parcels: Parcels, pool: str = ""
    ) -> None:
        self.run = run
        self.target = target
        self.upstream = upstream
        self.link = link
        self.parcels = parcels
        self.cost_nanos: int | None = None
        self.estimated = False
        self.job = ""
        self.pool = pool
        self.reference = run.request.id
        self.kept: Any = None
        self.taken: Callable[[], None] = lambda: None
        """To be called when the upstream has taken a job: it is alive, however long the job may go."""


class Direct(Protocol):
    """A protocol whose calls are answered in one exchange, whole or as a stream."""

    async def perform(self, call: Call) -> Output:
        """Make the call, count its units on `call.run`, emit deltas where they are wanted, and give the output.

        Raises UpstreamFailed, or RefusedInput where the upstream finds the input at fault.
        """
        ...


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as an upstream tells of it."""

    id: str
    state: Literal["waiting", "running", "succeeded", "failed", "cancelled"]
    fraction: float | None = None
    """How far it is, from 0 to 1, where the upstream says so."""
    found: dict[str, Any] = {}
    """What the protocol needs again: addresses for polling and of results. Stored with the id, so keep it small."""
    look_after_s: float | None = None
    """When to look again, where the upstream says so."""
    error: str = ""
    """Of a failed one, in the upstream's words; already cut to a length that may be shown."""
    reason: Reason = "upstream_error"


@runtime_checkable
class Jobs(Protocol):
    """A protocol whose calls are jobs: submitted, looked at until they end, and then collected."""

    async def submit(self, call: Call) -> Job:
        """Buy the job. It may have ended already. Raises as `Direct.perform` does."""
        ...

    async def look(self, call: Call, job: Job) -> Job:
        """Look how the job stands. Raises UpstreamFailed where the look failed, which says nothing of the job."""
        ...

    async def collect(self, call: Call, job: Job) -> Output:
        """Copy the results of a job that has succeeded, and count its units on `call.run`."""
        ...

    async def cancel(self, call: Call, job: Job) -> None:
        """Stop the job where the upstream can; else do nothing."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """A protocol of jobs that has work to do before it buys one."""

    async def prepare(self, call: Call) -> None:
        """Do what costs nothing, uploads among it, and leave in `call.kept` what `submit` sends.

        A worker that dies while it does leaves no doubt about whether a job was bought.
        """
        ...


@runtime_checkable
class Finding(Protocol):
    """A protocol of jobs whose upstreams know a job by the name that we gave it."""

    async def find(self, call: Call) -> Job | None:
        """Find the job that was bought under `call.reference`; None where there is none: it may then be bought."""
        ...


class Wire:
    """How the upstreams of one kind are spoken to: what each file of `protocols/` derives its one class from.

    It is made once for each upstream, and keeps nothing of a call.
    """

    def authorize(self, key: str) -> dict[str, str]:
        """Give the headers that carry the operator's key; asked with each call, for keys that are signed anew."""
        return {"authorization": f"Bearer {key}"}

    def judge(self, answer: Answer) -> Exception | None:
        """Say what an answer means where the usual reading of its status is wrong; None takes the usual.

        Asked of every whole answer, of those with status 200 too: some upstreams fail inside one.
        """
        return None

    def way(self, call: Call) -> Direct | Jobs:
        """Choose how a call is made: by its task, or by its model. Raises EngineError for a task it cannot do."""
        raise EngineError(f"The upstream {call.upstream.name} does not do {call.run.request.task}.")
