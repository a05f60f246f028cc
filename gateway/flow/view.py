"""A request as its owner may see it: what Postgres has of it, and where it stands in its queue."""

import contextlib
from collections.abc import Callable

import msgspec

from gateway.catalog.model import Snapshot
from gateway.contract.events import Output, Progress
from gateway.contract.phases import Phases
from gateway.contract.states import Reason, Status
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.flow.call import NOTE_PREFIX
from gateway.ledger.open_requests import Record
from gateway.ledger.steps import RatedStep
from gateway.queues.port import GatewaySide, QueueUnavailable
from gateway.routing.estimate import Estimates, Eta


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A request as its owner may see it."""

    id: str
    status: Status
    model: str
    task: Task
    created_us: int
    deadline_us: int | None = None
    finished_us: int | None = None
    hold_nanos: int
    charge_nanos: int = 0
    price_version: int
    position: int | None = None
    eta: Eta | None = None
    """When it will start and finish, where it waits and its pool has a history."""
    attempt: int = 0
    reason: Reason | None = None
    detail: str = ""
    units: Units = msgspec.field(default_factory=Units)
    phases: Phases = msgspec.field(default_factory=Phases)
    output: Output | None = None
    metadata: dict[str, str] | None = None
    notes: dict[str, str] = {}
    progress: float | None = None
    """From 0 to 1 while it runs, where its engine says so."""
    expires_us: int | None = None
    """Until when its output is kept."""
    worker: str = ""
    """Who ran the attempt that ended it."""
    steps: tuple[RatedStep, ...] = ()
    """What it ran, where it is a workflow."""


class Viewer:
    """Makes views of records."""

    def __init__(
        self,
        *,
        queue: Callable[[str], GatewaySide],
        snapshot: Callable[[], Snapshot],
        estimates: Estimates,
    ) -> None:
        self._queue = queue
        self._snapshot = snapshot
        self._estimates = estimates

    async def view_of(self, record: Record) -> View:
        """Show a request that its owner has found. While Redis is away an open one is shown as queued."""
        if record.finished_us is not None:
            return self._view(record, record.outcome or "failed")
        queue = self._queue(record.pool)
        try:
            standing = await queue.standing(record.id)
            if standing.state == "leased":
                latest = await queue.latest(record.id)
                fraction = latest.fraction if isinstance(latest, Progress) else None
                return self._view(record, "running", attempt=standing.attempt, progress=fraction)
        except QueueUnavailable:
            return self._view(record, "queued")
        if standing.state != "queued":
            return self._view(record, "queued")
        model = self._snapshot().model_names.get(record.model_id, "")
        eta = await self.eta(standing.pool or record.pool, model, standing.position)
        return self._view(record, "queued", position=standing.position, eta=eta)

    async def eta(self, pool: str, model: str, position: int) -> Eta | None:
        """Estimate for a place in a pool's queue, by how many the pool runs now; None where nobody can say."""
        if self._estimates.of(pool, model) is None:
            return None
        leased: int | None = None
        with contextlib.suppress(QueueUnavailable):
            leased = (await self._queue(pool).depth()).leased
        return self._estimates.eta(pool, model, position, leased)

    def _view(
        self,
        record: Record,
        status: Status,
        *,
        attempt: int = 0,
        position: int | None = None,
        eta: Eta | None = None,
        progress: float | None = None,
    ) -> View:
        words = record.metadata or {}
        metadata = {name: text for name, text in words.items() if not name.startswith(NOTE_PREFIX)}
        notes = {name.removeprefix(NOTE_PREFIX): text for name, text in words.items() if name.startswith(NOTE_PREFIX)}
        return View(
            id=record.id,
            status=status,
            model=self._snapshot().model_names.get(record.model_id, ""),
            task=record.task,
            created_us=record.created_us,
            deadline_us=record.deadline_us,
            finished_us=record.finished_us,
            hold_nanos=record.hold_nanos,
            charge_nanos=record.charge_nanos,
            price_version=record.price_version_id,
            position=position,
            eta=eta,
            attempt=record.attempt or attempt,
            reason=record.reason,
            detail=record.detail,
            units=record.units,
            phases=record.phases,
            output=record.output,
            metadata=metadata or None,
            notes=notes,
            progress=progress,
            expires_us=record.expires_us,
            worker=record.worker,
            steps=record.steps,
        )
