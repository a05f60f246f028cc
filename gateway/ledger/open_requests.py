"""Requests looked up by what sweeps and by who owns them: open ones, and finished ones by their usage rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, Select, delete, exists, extract, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.events import Output, Settled
from gateway.contract.ids import request_id_of, uuid_of
from gateway.contract.phases import Phases
from gateway.contract.request import Plan, decode_plan
from gateway.contract.states import OUTCOMES, REASONS, Outcome, Reason
from gateway.contract.tasks import TASKS, Task
from gateway.contract.units import UNIT_NAMES, Units
from gateway.db.requests import idempotency, open_request, request_payload, request_way
from gateway.db.usage import PHASE_COLUMNS, usage
from gateway.ledger.outputs import KeptOutput, kept_output, prune_outputs
from gateway.ledger.steps import RatedStep, steps_of
from gateway.ledger.transaction import transaction

KEEP_IDEMPOTENCY = timedelta(hours=24)
MOST_PRUNED = 10_000
"""Rows deleted in one go: 5,000 a second at a sweep every 2 s."""
MOST_PAYLOAD_BYTES = 32 * 1024 * 1024
"""Payloads read in one page."""

_FIRST = UUID(int=0)


class OpenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An open request as the sweeper sees it."""

    id: str
    account_id: int
    api_key_id: int
    model_id: int
    price_version_id: int
    task: Task
    pool: str
    gateway: str
    keep: bool
    hold_nanos: int
    created_us: int
    deadline_us: int
    late_s: float
    """Seconds since its deadline by the clock of Postgres; negative before."""
    payload: bytes | None = None
    """The input, where it is kept in Postgres. Not read by `overdue`."""
    plan: Plan | None = None
    """Its ways, where a kept one has several."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A request as Postgres knows it, open or finished, for its owner."""

    id: str
    account_id: int
    api_key_id: int
    model_id: int
    price_version_id: int
    task: Task
    pool: str
    hold_nanos: int
    created_us: int
    deadline_us: int | None = None
    """Known while it is open."""
    finished_us: int | None = None
    """None while it is open, and all below stands empty."""
    charge_nanos: int = 0
    outcome: Outcome | None = None
    reason: Reason | None = None
    attempt: int = 0
    units: Units = msgspec.field(default_factory=Units)
    phases: Phases = msgspec.field(default_factory=Phases)
    output: Output | None = None
    detail: str = ""
    metadata: dict[str, str] | None = None
    expires_us: int | None = None
    """Until when the output of a finished one is kept."""
    worker: str = ""
    """Who ran the attempt that ended it."""
    steps: tuple[RatedStep, ...] = ()
    """What it ran, where it is a workflow; only read by `record`."""


class OpenRequests:
    """Looks requests up. Every method raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._after = _FIRST

    async def older_than(self, age_s: float, *, limit: int) -> list[OpenRequest]:
        """List open requests of at least this age, with their payloads, going on where the last call ended.

        Pages run by id and begin anew after the last one, so none is passed over while others come and go.
        A page has at most `limit` rows, and 32 MiB of payloads.
        """
        page = (
            select(open_request)
            .where(open_request.c.id > self._after, open_request.c.created_at <= func.now() - timedelta(seconds=age_s))
            .order_by(open_request.c.id)
            .limit(limit)
            .subquery()
        )
        size = func.coalesce(func.octet_length(request_payload.c.payload), 0)
        measured = (
            select(
                page,
                request_payload.c.payload,
                request_way.c.plan,
                (func.sum(size).over(order_by=page.c.id) - size).label("bytes_before"),
                func.count().over().label("page_rows"),
            )
            .outerjoin_from(page, request_payload, request_payload.c.id == page.c.id)
            .outerjoin(request_way, request_way.c.id == page.c.id)
            .subquery()
        )
        query = (
            select(measured, _late_s(measured.c.deadline_at))
            .where(measured.c.bytes_before < MOST_PAYLOAD_BYTES)
            .order_by(measured.c.id)
        )
        async with transaction(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        whole = not rows or (len(rows) == rows[0].page_rows < limit)
        self._after = _FIRST if whole else rows[-1].id
        return [_open_request(row, row.payload, row.plan) for row in rows]

    async def overdue(self, grace_s: float, *, limit: int) -> list[OpenRequest]:
        """List open requests whose deadline passed `grace_s` ago or longer, the longest overdue first; no payloads."""
        late = open_request.c.deadline_at <= func.now() - timedelta(seconds=grace_s)
        return await self._list(late, limit)

    async def of_gateway(self, gateway: str, *, limit: int) -> list[OpenRequest]:
        """List the open requests that a gateway accepted, the first to be due first; without payloads."""
        return await self._list(open_request.c.gateway == gateway, limit)

    async def _list(self, where: Any, limit: int) -> list[OpenRequest]:
        query = select(open_request, _late_s(open_request.c.deadline_at)).where(where)
        async with transaction(self._engine) as connection:
            rows = await connection.execute(query.order_by(open_request.c.deadline_at).limit(limit))
        return [_open_request(row, None) for row in rows]

    async def still_open(self, request_ids: Sequence[str]) -> list[str]:
        """Say which of these are open."""
        query = select(open_request.c.id).where(open_request.c.id.in_([uuid_of(id_) for id_ in request_ids]))
        async with transaction(self._engine) as connection:
            return [request_id_of(id_) for id_ in (await connection.execute(query)).scalars()]

    async def settled(self, request_id: str) -> Settled | None:
        """Give the settlement of a request; None while it is open, and where there never was such a request."""
        async with transaction(self._engine) as connection:
            row = (await connection.execute(select(usage).where(usage.c.id == uuid_of(request_id)))).one_or_none()
        if row is None:
            return None
        return Settled(
            request_id,
            OUTCOMES[row.outcome],
            REASONS[row.reason],
            row.charge_nanos,
            row.hold_nanos,
            _units(row),
            _phases(row),
            row.attempt,
        )

    async def record(self, account_id: int, request_id: str) -> Record | None:
        """Find a request of this account; None where it has none of this id."""
        id_ = uuid_of(request_id)
        async with transaction(self._engine) as connection:
            # Open first: what is settled between the two looks is then found by the second.
            row = (await connection.execute(_open_of(account_id, id_))).one_or_none()
            if row is not None:
                return open_record(row)
            mine = (usage.c.id == id_, usage.c.account_id == account_id)
            row = (await connection.execute(select(usage).where(*mine))).one_or_none()
            if row is None:
                return None
            finished = finished_record(row, await kept_output(connection, id_))
            return msgspec.structs.replace(finished, steps=await steps_of(connection, id_))

    async def prune(self) -> None:
        """Delete idempotency keys older than 24 hours, and outputs that have expired: a bounded number of each."""
        old = idempotency.c
        key = tuple_(old.account_id, old.api_key_id, old.key)
        outdated = (
            select(old.account_id, old.api_key_id, old.key)
            .where(old.created_at < func.now() - KEEP_IDEMPOTENCY)
            .where(~exists().where(open_request.c.id == old.request_id))
            .order_by(old.created_at)
            .limit(MOST_PRUNED)
        )
        async with transaction(self._engine) as connection:
            await connection.execute(delete(idempotency).where(key.in_(outdated)))
        async with transaction(self._engine) as connection:
            await prune_outputs(connection, limit=MOST_PRUNED)


def _late_s(deadline_at: Any) -> Any:
    return extract("epoch", func.now() - deadline_at).label("late_s")


def _open_of(account_id: int, id_: UUID) -> Select[Any]:
    return (
        select(open_request, request_payload.c.metadata)
        .outerjoin_from(open_request, request_payload, request_payload.c.id == open_request.c.id)
        .where(open_request.c.id == id_, open_request.c.account_id == account_id)
    )


def _us(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


def _units(row: Any) -> Units:
    return Units(*(getattr(row, name) for name in UNIT_NAMES))


def _phases(row: Any) -> Phases:
    return Phases(*(getattr(row, name) for name in PHASE_COLUMNS))


def _open_request(row: Row[Any], payload: bytes | None, plan: bytes | None = None) -> OpenRequest:
    return OpenRequest(
        id=request_id_of(row.id),
        account_id=row.account_id,
        api_key_id=row.api_key_id,
        model_id=row.model_id,
        price_version_id=row.price_version_id,
        task=TASKS[row.task],
        pool=row.pool,
        gateway=row.gateway,
        keep=row.keep,
        hold_nanos=row.hold_nanos,
        created_us=_us(row.created_at),
        deadline_us=_us(row.deadline_at),
        late_s=float(row.late_s),
        payload=payload,
        plan=None if plan is None else decode_plan(plan),
    )


def open_record(row: Row[Any]) -> Record:
    """Make the record of an open request: its row, with its metadata."""
    return Record(
        id=request_id_of(row.id),
        account_id=row.account_id,
        api_key_id=row.api_key_id,
        model_id=row.model_id,
        price_version_id=row.price_version_id,
        task=TASKS[row.task],
        pool=row.pool,
        hold_nanos=row.hold_nanos,
        created_us=_us(row.created_at),
        deadline_us=_us(row.deadline_at),
        metadata=row.metadata,
    )


def finished_record(row: Row[Any], kept: KeptOutput) -> Record:
    """Make the record of a finished request from its usage row and what is kept of it."""
    return Record(
        id=request_id_of(row.id),
        account_id=row.account_id,
        api_key_id=row.api_key_id,
        model_id=row.model_id,
        price_version_id=row.price_version_id,
        task=TASKS[row.task],
        pool=row.pool,
        hold_nanos=row.hold_nanos,
        created_us=_us(row.created_at),
        finished_us=_us(row.finished_at),
        charge_nanos=row.charge_nanos,
        outcome=OUTCOMES[row.outcome],
        reason=REASONS[row.reason],
        attempt=row.attempt,
        units=_units(row),
        phases=_phases(row),
        output=kept.output,
        detail=kept.detail,
        metadata=kept.metadata,
        expires_us=_us(kept.expires_at) if kept.expires_at else None,
        worker=row.worker,
    )
