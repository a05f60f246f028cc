"""Reading requests again: how one stands, what it said, and stopping it, by the account that owns it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import msgspec

from gateway.catalog.model import Snapshot
from gateway.contract.events import Event, Output
from gateway.contract.ids import admitted_ms, uuid_of
from gateway.contract.phases import Phases
from gateway.contract.states import Reason, Status
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.errors import Conflict, NotFound
from gateway.flow.authenticate import identify
from gateway.flow.respond import Answer, failure
from gateway.flow.way import Placed, Way, unserved
from gateway.ledger.open_requests import OpenRequests, Record
from gateway.queues.port import QueueUnavailable

ENQUEUE_PATIENCE_S = 1.0
"""How long an accepted asynchronous call waits to learn its position."""

SETTLE_LOOK_S = 0.1
SETTLE_PATIENCE_S = 10.0


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
    eta_s: float | None = None
    attempt: int = 0
    reason: Reason | None = None
    detail: str = ""
    units: Units = msgspec.field(default_factory=Units)
    phases: Phases = msgspec.field(default_factory=Phases)
    output: Output | None = None
    metadata: dict[str, str] | None = None


class Watch:
    """Looks requests up for their owners."""

    def __init__(self, way: Way, open_requests: OpenRequests, snapshot: Callable[[], Snapshot]) -> None:
        self._way = way
        self._open_requests = open_requests
        self._snapshot = snapshot

    async def accepted(self, placed: Placed) -> View:
        """Show a request that was placed a moment ago."""
        admitted = placed.enqueued.admitted
        resolved, pool = admitted.routed.quoted.resolved, admitted.routed.pool.name
        position = None
        with contextlib.suppress(TimeoutError, QueueUnavailable):  # the sweeper puts it into the queue
            position = await asyncio.wait_for(asyncio.shield(placed.enqueued.depth), ENQUEUE_PATIENCE_S) - 1
        return View(
            id=placed.id,
            status="queued",
            model=resolved.model.name,
            task=resolved.task,
            created_us=admitted_ms(placed.id) * 1000,
            hold_nanos=admitted.routed.quoted.quote.nanos,
            price_version=resolved.price.id,
            position=position if position is None else max(position, 0),
            eta_s=self._way.backlog.wait_s(pool, position or 0),
        )

    async def view_for(self, secret: str, request_id: str) -> View:
        """Show a request to the holder of a key.

        Raises Unauthorized, or NotFound also for another account's request.
        """
        record = await self._record(secret, request_id)
        if record.finished_us is not None:
            return self._view(record, record.outcome or "failed")
        try:
            standing = await self._way.queue(record.pool).standing(request_id)
        except QueueUnavailable:
            return self._view(record, "queued")
        if standing.state == "leased":
            return self._view(record, "running", attempt=standing.attempt)
        eta_s = self._way.backlog.wait_s(record.pool, standing.position)
        position = standing.position if standing.state == "queued" else None
        return self._view(record, "queued", position=position, eta_s=eta_s)

    async def answer_of(self, secret: str, request_id: str) -> Answer:
        """Give the answer of a repeated call from what is kept. Raises the error that the request ended with."""
        record = await self._record(secret, request_id)
        if record.finished_us is None or record.outcome is None:
            raise Conflict(
                "The first call with this Idempotency-Key is still running.",
                code="idempotency_in_flight",
                request_id=request_id,
            )
        if record.outcome != "succeeded" and record.reason is not None:
            raise failure(request_id, record.reason, record.detail)
        return Answer(
            id=request_id,
            model=self._snapshot().model_names.get(record.model_id, ""),
            created_s=record.created_us // 1_000_000,
            outcome=record.outcome,
            output=record.output,
            units=record.units,
            phases=record.phases,
            total_us=record.finished_us - record.created_us,
            charge_nanos=record.charge_nanos,
            hold_nanos=record.hold_nanos,
            price_version=record.price_version_id,
            attempt=record.attempt,
        )

    async def events(self, secret: str, request_id: str, after: str) -> AsyncIterator[tuple[str, Event]]:
        """Give the kept events of a request after entry `after`, going on as they come, to its end."""
        record = await self._record(secret, request_id)
        return self._way.queue(record.pool).events(request_id, after)

    async def settled_view(self, secret: str, request_id: str) -> View:
        """Show a request whose end has been told, waiting a moment for its charge to commit."""
        for _ in range(int(SETTLE_PATIENCE_S / SETTLE_LOOK_S)):
            view = await self.view_for(secret, request_id)
            if view.finished_us is not None:
                return view
            await asyncio.sleep(SETTLE_LOOK_S)
        return await self.view_for(secret, request_id)

    async def cancel(self, secret: str, request_id: str) -> View:
        """Stop a request. One that has ended already stays as it is."""
        record = await self._record(secret, request_id)
        if record.finished_us is None:
            await self._way.queue(record.pool).cancel(
                unserved(request_id, record.price_version_id, "cancelled_by_caller")
            )
        return await self.view_for(secret, request_id)

    async def _record(self, secret: str, request_id: str) -> Record:
        caller = await identify(self._way.keyring, secret)
        try:
            uuid_of(request_id)
        except ValueError:
            raise NotFound("There is no such request.") from None
        record = await self._open_requests.record(caller.account_id, request_id)
        if record is None:
            raise NotFound("There is no such request.")
        return record

    def _view(
        self,
        record: Record,
        status: Status,
        *,
        attempt: int = 0,
        position: int | None = None,
        eta_s: float | None = None,
    ) -> View:
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
            eta_s=eta_s,
            attempt=record.attempt or attempt,
            reason=record.reason,
            detail=record.detail,
            units=record.units,
            phases=record.phases,
            output=record.output,
            metadata=record.metadata,
        )
