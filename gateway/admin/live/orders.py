"""What operators change about queues and workers: each order is kept and stands in the audit log as it is given."""

from collections.abc import Callable

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.ids import uuid_of
from gateway.db.requests import open_request
from gateway.errors import NotFound, Unavailable
from gateway.flow.orders import note_order
from gateway.flow.way import unserved
from gateway.ledger.audit import Action, Actor, Changes, write_audit
from gateway.ledger.transaction import transaction
from gateway.queues.operators import OperatorSide
from gateway.queues.port import GatewaySide, QueueUnavailable


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an order."""

    new: bool
    """Whether it changed anything."""
    audit_id: int


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """An open request, as whoever stops it needs it."""

    id: str
    pool: str
    price_version_id: int
    hold_nanos: int


class Orders:
    """Gives orders. Each is noted first and given then: while Redis is away neither happens. Raises Unavailable."""

    def __init__(
        self, engine: AsyncEngine, operator: Callable[[str], OperatorSide], queue: Callable[[str], GatewaySide]
    ) -> None:
        self._engine = engine
        self._operator = operator
        self._queue = queue

    async def pause(self, pool: str, *, on: bool, by: Actor) -> Done:
        """Let nobody take from a pool, or everybody again."""
        action = _action("pool.pause" if on else "pool.resume", "pool", pool, {"paused": (not on, on)})
        async with transaction(self._engine) as connection:
            audit_id = await write_audit(connection, by, action)
            await note_order(connection, pool, "", stands=on, actor=by.name)
            try:
                new = await self._operator(pool).pause(on=on)
            except QueueUnavailable:
                raise _away() from None
        return Done(new=new, audit_id=audit_id)

    async def drain(self, pool: str, worker: str, *, on: bool, by: Actor) -> Done:
        """Tell a worker to take no more, or to go on. Raises NotFound."""
        action = _action("worker.drain" if on else "worker.undrain", "worker", worker, {"drained": (not on, on)})
        async with transaction(self._engine) as connection:
            audit_id = await write_audit(connection, by, action)
            await note_order(connection, pool, worker, stands=on, actor=by.name)
            try:
                new = await self._operator(pool).drain(worker, on=on)
            except QueueUnavailable:
                raise _away() from None
            if new is None:
                raise NotFound("This pool has no such worker any more.")
        return Done(new=new, audit_id=audit_id)

    async def open_request(self, request_id: str) -> Open:
        """Find an open request. Raises NotFound for one that is not open, or not at all."""
        try:
            found = select(open_request).where(open_request.c.id == uuid_of(request_id))
        except ValueError:
            raise NotFound("There is no such request.") from None
        async with transaction(self._engine) as connection:
            row = (await connection.execute(found)).one_or_none()
        if row is None:
            raise NotFound("This request is not open any more.")
        return Open(id=request_id, pool=row.pool, price_version_id=row.price_version_id, hold_nanos=row.hold_nanos)

    async def cancel(self, request_id: str, *, by: Actor) -> Done:
        """Stop an open request. What was produced is charged as its model declares. Raises NotFound."""
        one = await self.open_request(request_id)
        end = unserved(request_id, one.price_version_id, "cancelled_by_caller")
        async with transaction(self._engine) as connection:
            audit_id = await write_audit(connection, by, _action("request.cancel", "request", request_id, {}))
            try:
                answer = await self._queue(one.pool).cancel(end)
            except QueueUnavailable:
                raise _away() from None
        return Done(new=answer != "absent", audit_id=audit_id)


def _action(name: str, kind: str, object_id: str, changes: Changes) -> Action:
    return Action(name=name, object_kind=kind, object_id=object_id, changes=changes)


def _away() -> Unavailable:
    return Unavailable("Redis is away for the moment; nothing was changed.", retry_after_s=1.0)
