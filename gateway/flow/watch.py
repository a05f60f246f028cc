"""Reading requests again: how one stands, what it said, and stopping it, by the account that owns it."""

import asyncio
from collections.abc import AsyncIterator, Callable

from gateway.catalog.model import Snapshot
from gateway.contract.events import Event
from gateway.contract.ids import admitted_ms, uuid_of
from gateway.errors import Conflict, NotFound
from gateway.flow.authenticate import identify
from gateway.flow.respond import Answer, failure
from gateway.flow.view import View, Viewer
from gateway.flow.way import Placed, Way, unserved
from gateway.ledger.open_requests import OpenRequests, Record
from gateway.queues.port import QueueUnavailable

ENQUEUE_PATIENCE_S = 1.0
"""How long an accepted asynchronous call waits to learn its position."""

ENDING_LOOKS_S = (0.02, 0.05, 0.1, 0.2)
"""A request that stands in no queue has mostly ended, and its charge commits now: the pauses before looking again."""

SETTLE_LOOK_S = 0.1
SETTLE_PATIENCE_S = 10.0


class Watch:
    """Looks requests up for their owners."""

    def __init__(self, way: Way, open_requests: OpenRequests, snapshot: Callable[[], Snapshot]) -> None:
        self._way = way
        self._open_requests = open_requests
        self._snapshot = snapshot
        self._viewer = Viewer(queue=way.queue, snapshot=snapshot, estimates=way.estimates)

    async def view_of(self, record: Record) -> View:
        """Show a request that its owner has found already."""
        return await self._viewer.view_of(record)

    async def accepted(self, placed: Placed) -> View:
        """Show a request that was placed a moment ago."""
        admitted = placed.enqueued.admitted
        resolved, pool = admitted.routed.quoted.resolved, admitted.routed.pool.name
        position = await self._position(placed)
        return View(
            id=placed.id,
            status="queued",
            model=resolved.model.name,
            task=resolved.task,
            created_us=admitted_ms(placed.id) * 1000,
            hold_nanos=admitted.routed.hold_nanos,
            price_version=resolved.price.id,
            notes=resolved.call.notes,
            position=position,
            eta=None if position is None else await self._viewer.eta(pool, resolved.model.name, position),
        )

    async def _position(self, placed: Placed) -> int | None:
        """Learn the place of a request in its queue; None while nobody can say.

        It is the last where all waiting are of one account; else its account's share of the queue decides.
        """
        pool = placed.enqueued.admitted.routed.pool.name
        try:  # where the queue does not answer, the sweeper puts it in
            last = await asyncio.wait_for(asyncio.shield(placed.enqueued.depth), ENQUEUE_PATIENCE_S) - 1
            if last <= 0:
                return 0
            standing = await self._way.queue(pool).standing(placed.id)
        except (TimeoutError, QueueUnavailable):
            return None
        return standing.position if standing.state == "queued" else 0

    async def view_for(self, secret: str, request_id: str) -> View:
        """Show a request to the holder of a key.

        Raises Unauthorized, or NotFound also for another account's request.
        """
        view = await self.view_of(await self._record(secret, request_id))
        for pause_s in ENDING_LOOKS_S:
            if view.status != "queued" or view.position is not None:
                break
            await asyncio.sleep(pause_s)
            view = await self.view_of(await self._record(secret, request_id))
        return view

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

    async def record_for(self, secret: str, request_id: str) -> Record:
        """Find the row of a request for the holder of a key. Raises Unauthorized, or NotFound as `view_for`."""
        return await self._record(secret, request_id)

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
