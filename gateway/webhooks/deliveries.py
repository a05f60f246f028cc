"""The owner's side of the outbox: what was told, every try, and telling it again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from sqlalchemy import Row, and_, func, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.webhooks import webhook_delivery, webhook_event
from gateway.errors import NotFound
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.transaction import transaction
from gateway.webhooks.events import EventKey, key_of, parse_event_id, parse_request_id

MOST_PAGE = 1000
MOST_TRIES_SHOWN = 50
MOST_AGAIN = 1000
"""Events that are told again in one go."""
MOST_COUNTED = 10_000

State = Literal["pending", "delivered", "given_up"]

_EVENT = (webhook_event.c.request_id, webhook_event.c.kind, webhook_event.c.number)
_TRY = (webhook_delivery.c.request_id, webhook_delivery.c.kind, webhook_delivery.c.number)
_ORDER = (webhook_event.c.created_at, *_EVENT)


class TryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One try: what the receiver answered (null where it did not), how long it took, what went wrong."""

    number: int
    at: datetime
    status: int | None
    took_ms: int
    error: str


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its tries, the latest of them first."""

    id: str
    type: str
    request_id: str
    account_id: int
    url: str
    state: State
    created_at: datetime
    next_at: datetime | None
    delivered_at: datetime | None
    tries: int
    log: tuple[TryRecord, ...] = ()


class DeliveryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which events: of one account or of all, of one request, to one host, in one state; the latest first."""

    account_id: int | None = None
    request_id: str = ""
    host: str = ""
    state: State | None = None
    after: str = ""
    """The id of the last event of the page before."""
    limit: int = 100


class Deliveries:
    """Reads the outbox for owners and operators. Every method raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def list(self, query: DeliveryQuery) -> Sequence[Delivery]:
        """List events. Raises NotFound where `request_id` or `after` is no id."""
        wanted = select(webhook_event).where(*_conditions(query))
        wanted = wanted.order_by(*(column.desc() for column in _ORDER)).limit(min(query.limit, MOST_PAGE))
        async with transaction(self._engine) as connection:
            rows = (await connection.execute(wanted)).all()
            tries = await _tries(connection, rows)
        return [_delivery(row, tries.get((row.request_id, row.kind, row.number), ())) for row in rows]

    async def show(self, account_id: int | None, event_id: str) -> Delivery:
        """Show one event of an account, or of any where None is given. Raises NotFound."""
        async with transaction(self._engine) as connection:
            return await _show(connection, account_id, parse_event_id(event_id))

    async def count(self, query: DeliveryQuery) -> int:
        """Count the events that match, up to one above MOST_COUNTED."""
        matches = select(webhook_event.c.kind).where(*_conditions(query)).limit(MOST_COUNTED + 1)
        async with transaction(self._engine) as connection:
            counted = select(func.count()).select_from(matches.subquery())
            return int((await connection.execute(counted)).scalar_one())

    async def redeliver(self, account_id: int | None, event_id: str, *, by: Actor | None = None) -> Delivery:
        """Tell an event again, now and by a whole new schedule, whatever became of it. Raises NotFound."""
        key = parse_event_id(event_id)
        again = update(webhook_event).where(*_is(account_id, key)).values(due_at=func.now(), round=0)
        async with transaction(self._engine) as connection:
            await connection.execute(again)
            shown = await _show(connection, account_id, key)
            await write_audit(connection, by, Action(name="webhook.redeliver", object_kind="webhook", object_id=key.id))
            return shown

    async def redeliver_all(self, query: DeliveryQuery, *, by: Actor) -> tuple[int, int]:
        """Tell the latest MOST_AGAIN of the events that match again. Answers how many, and the audit entry's id."""
        latest = select(*_EVENT).where(*_conditions(query)).order_by(*(column.desc() for column in _ORDER))
        these = tuple_(*_EVENT).in_(latest.limit(MOST_AGAIN))
        given = {name: value for name, value in msgspec.structs.asdict(query).items() if value and name != "limit"}
        async with transaction(self._engine) as connection:
            done = await connection.execute(update(webhook_event).where(these).values(due_at=func.now(), round=0))
            action = Action(
                name="webhook.redeliver_all",
                object_kind="webhook",
                object_id="many",
                changes={"events": (None, done.rowcount), **{name: (None, value) for name, value in given.items()}},
            )
            return done.rowcount, await write_audit(connection, by, action)


def _conditions(query: DeliveryQuery) -> list[Any]:
    found: list[Any] = []
    if query.account_id is not None:
        found.append(webhook_event.c.account_id == query.account_id)
    if query.request_id:
        found.append(webhook_event.c.request_id == parse_request_id(query.request_id))
    if query.host:
        found.append(webhook_event.c.host == query.host)
    if query.state is not None:
        found.append(_state_is(query.state))
    if query.after:
        last = select(webhook_event.c.created_at).where(*_is(query.account_id, parse_event_id(query.after)))
        key = parse_event_id(query.after).columns
        found.append(tuple_(*_ORDER) < tuple_(last.scalar_subquery(), *key))
    return found


def _state_is(state: State) -> Any:
    due, delivered = webhook_event.c.due_at, webhook_event.c.delivered_at
    if state == "pending":
        return due.is_not(None)
    return and_(due.is_(None), delivered.is_not(None) if state == "delivered" else delivered.is_(None))


def _is(account_id: int | None, key: EventKey) -> list[Any]:
    same = [column == value for column, value in zip(_EVENT, key.columns, strict=True)]
    return same if account_id is None else [*same, webhook_event.c.account_id == account_id]


async def _show(connection: AsyncConnection, account_id: int | None, key: EventKey) -> Delivery:
    row = (await connection.execute(select(webhook_event).where(*_is(account_id, key)))).one_or_none()
    if row is None:
        raise NotFound("There is no such webhook event.")
    return _delivery(row, (await _tries(connection, [row])).get(key.columns, ()))


async def _tries(connection: AsyncConnection, rows: Sequence[Row[Any]]) -> dict[tuple[Any, ...], list[TryRecord]]:
    """Read the latest tries of events, each event's latest first."""
    if not rows:
        return {}
    these = or_(*(tuple_(*_TRY) == tuple_(row.request_id, row.kind, row.number) for row in rows))
    found: dict[tuple[Any, ...], list[TryRecord]] = {}
    for row in await connection.execute(
        select(webhook_delivery).where(these).order_by(webhook_delivery.c["try"].desc())
    ):
        of_event = found.setdefault((row.request_id, row.kind, row.number), [])
        if len(of_event) < MOST_TRIES_SHOWN:
            number = row._mapping["try"]
            of_event.append(
                TryRecord(number=number, at=row.at, status=row.status, took_ms=row.took_ms, error=row.error)
            )
    return found


def _delivery(row: Row[Any], tries: Sequence[TryRecord]) -> Delivery:
    key = key_of(row.request_id, row.kind, row.number)
    state: State = "pending" if row.due_at else "delivered" if row.delivered_at else "given_up"
    return Delivery(
        id=key.id,
        type=key.type,
        request_id=key.request_id,
        account_id=row.account_id,
        url=row.url,
        state=state,
        created_at=row.created_at,
        next_at=row.due_at,
        delivered_at=row.delivered_at,
        tries=row.tries,
        log=tuple(tries),
    )
