"""Payments that providers tell of: each event kept, each payment booked as a top-up once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid5

import msgspec
from sqlalchemy import Row, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import MOST_NANOS
from gateway.db.money import payment_event
from gateway.errors import FaregateError, Unavailable
from gateway.ledger.accounts import move
from gateway.ledger.audit import Actor
from gateway.ledger.movements import Movement
from gateway.ledger.transaction import transaction

MAX_PAGE = 500
_NAMES = UUID("6f0f7a52-3f0b-5f0e-9d1b-6f6172656761")
"""Under which the id of a provider's payment becomes that of its ledger transaction."""

PaymentOutcome = Literal["booked", "ignored", "refused", "attention"]
"""`attention`: money went back, and an operator decides what becomes of the balance."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """What an event says."""

    provider: str
    event_id: str
    kind: Literal["payment", "attention", "ignored", "refused"]
    payment_id: str = ""
    account_id: int | None = None
    amount_nanos: int | None = None
    detail: str = ""


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a payment provider, and what became of it."""

    provider: str
    event_id: str
    at: datetime
    account_id: int | None
    amount_nanos: int | None
    transaction_id: UUID | None
    outcome: PaymentOutcome
    detail: str


class Payments:
    """Books payments and lists events. Every method raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def take(self, incoming: Incoming) -> Payment:
        """Keep an event and do what it says. One that was kept is answered as it was, unless it was refused then."""
        async with transaction(self._engine) as connection:
            kept = await _keep(connection, incoming)
            if kept.outcome != "refused":
                return kept
            if incoming.kind != "payment":
                return await _end(connection, incoming, incoming.kind, incoming.detail)
            return await _book(connection, incoming)

    async def list(
        self, *, account_id: int | None = None, before: tuple[datetime, str] | None = None, limit: int = 100
    ) -> Sequence[Payment]:
        """List events, the latest first: of one account or of all, from the one after that of `before`."""
        order = (payment_event.c.at, payment_event.c.event_id)
        wanted = select(payment_event).order_by(*(column.desc() for column in order)).limit(min(limit, MAX_PAGE))
        if account_id is not None:
            wanted = wanted.where(payment_event.c.account_id == account_id)
        if before is not None:
            wanted = wanted.where(tuple_(*order) < before)
        async with transaction(self._engine) as connection:
            return [_told(row) for row in await connection.execute(wanted)]


def transaction_of(provider: str, payment_id: str) -> UUID:
    """Give the ledger transaction of a provider's payment."""
    return uuid5(_NAMES, f"{provider}:{payment_id}")


async def _keep(connection: AsyncConnection, incoming: Incoming) -> Payment:
    """Write the event down as refused until it is more, and lock it; answers what stands there."""
    values = {
        "provider": incoming.provider,
        "event_id": incoming.event_id,
        "account_id": incoming.account_id,
        "amount_nanos": incoming.amount_nanos,
        "outcome": "refused",
    }
    await connection.execute(insert(payment_event).values(values).on_conflict_do_nothing())
    wanted = select(payment_event).where(*_is(incoming)).with_for_update()
    return _told((await connection.execute(wanted)).one())


async def _book(connection: AsyncConnection, incoming: Incoming) -> Payment:
    account_id, amount = incoming.account_id or 0, incoming.amount_nanos or 0
    if not 0 < amount <= MOST_NANOS:
        return await _end(connection, incoming, "refused", "the amount is not above zero, or beyond what is counted")
    number = transaction_of(incoming.provider, incoming.payment_id)
    await connection.execute(text("select pg_advisory_xact_lock(hashtext(:id))"), {"id": f"ledger {number}"})
    earlier = select(payment_event).where(payment_event.c.transaction_id == number)
    booked = (await connection.execute(earlier)).one_or_none()
    if booked is not None:
        same = (booked.account_id, booked.amount_nanos) == (account_id, amount)
        told = "is booked already" if same else "is booked already, for another account or amount"
        outcome: PaymentOutcome = "ignored" if same else "attention"
        return await _end(connection, incoming, outcome, f"the payment {told}, by {booked.event_id}")
    reason = f"{incoming.provider} {incoming.payment_id}"
    movement = Movement(amount_nanos=amount, kind="top_up", reason=reason, transaction_id=number)
    by = Actor(name=f"payments: {incoming.provider}", role="provider", door="api", request_id=incoming.event_id)
    try:
        async with connection.begin_nested():
            await move(connection, account_id, movement, by)
    except Unavailable:
        raise
    except FaregateError as error:
        return await _end(connection, incoming, "refused", error.message)
    return await _end(connection, incoming, "booked", "", number)


async def _end(
    connection: AsyncConnection, incoming: Incoming, outcome: str, detail: str, number: UUID | None = None
) -> Payment:
    values = {
        "outcome": outcome,
        "detail": detail,
        "transaction_id": number,
        "account_id": incoming.account_id,
        "amount_nanos": incoming.amount_nanos,
    }
    changed = update(payment_event).where(*_is(incoming)).values(values).returning(payment_event)
    return _told((await connection.execute(changed)).one())


def _is(incoming: Incoming) -> tuple[Any, Any]:
    return payment_event.c.provider == incoming.provider, payment_event.c.event_id == incoming.event_id


def _told(row: Row[Any]) -> Payment:
    return Payment(**{name: getattr(row, name) for name in Payment.__struct_fields__})
