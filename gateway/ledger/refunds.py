"""Refunds: the charge of a request given back, in part or in full, and in all never more than it was.

A refund is a ledger transaction of its own, plus on the account and minus on revenue; the charge and the usage row
stay as they are. What is given back is available again, and counts against no budget any longer.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import Row, func, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.contract.ids import request_id_of, uuid_of
from gateway.db.accounts import account, api_key
from gateway.db.ledger import REVENUE
from gateway.db.limits import OWNER_KINDS, spending_limit
from gateway.db.money import refund
from gateway.db.requests import open_request
from gateway.db.usage import usage
from gateway.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.movements import Movement, already_booked, book_entries, lock_account
from gateway.ledger.records import Refund, RequestRefunds
from gateway.ledger.transaction import transaction
from gateway.money import usd_text

_Row = Row[*tuple[Any, ...]]

MAX_PAGE = 1000
"""The most refunds that one list answers."""


class NewRefund(msgspec.Struct, frozen=True, kw_only=True):
    """A refund to be made. Repeating a `transaction_id` gives nothing back twice."""

    request_id: str
    reason: str
    amount_nanos: int | None = None
    """None is all that is left of the charge."""
    transaction_id: UUID | None = None


class Refunds:
    """Gives charges back, and lists what was given back."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def give(self, new: NewRefund, by: Actor) -> Refund:
        """Give back a charge, or a part of it, exactly once for a transaction id.

        Raises InvalidRequest, NotFound where there is no such request, Conflict where it has not ended, and
        Unprocessable where more would be given back than was charged.
        """
        _check(new)
        request = _uuid(new.request_id)
        try:
            async with transaction(self._engine) as connection:
                charged = await _charged(connection, request)
                await lock_account(connection, charged.account_id)
                return await _give(connection, charged, new, by)
        except IntegrityError as error:
            if "refund_pkey" not in str(error):
                raise
            raise _other_transaction() from None

    async def of_request(self, request_id: str) -> RequestRefunds:
        """Say what a request was charged and what was given back. Raises NotFound, or Conflict while it is open."""
        request = _uuid(request_id)
        async with transaction(self._engine) as connection:
            charged = await _charged(connection, request)
            wanted = select(refund).where(refund.c.request_id == request).order_by(refund.c.at, refund.c.id)
            given = [_told(row) for row in await connection.execute(wanted)]
        return RequestRefunds(
            request_id=request_id,
            account_id=charged.account_id,
            api_key_id=charged.api_key_id,
            charge_nanos=charged.charge_nanos,
            refunded_nanos=sum(one.amount_nanos for one in given),
            refunds=given,
        )

    async def list(
        self, *, account_id: int | None = None, before: tuple[datetime, UUID] | None = None, limit: int = MAX_PAGE
    ) -> Sequence[Refund]:
        """List refunds, the latest first: of one account or of all, from the one after that of `before`."""
        wanted = select(refund).order_by(refund.c.at.desc(), refund.c.id.desc()).limit(min(limit, MAX_PAGE))
        if account_id is not None:
            wanted = wanted.where(refund.c.account_id == account_id)
        if before is not None:
            wanted = wanted.where(tuple_(refund.c.at, refund.c.id) < before)
        async with transaction(self._engine) as connection:
            return [_told(row) for row in await connection.execute(wanted)]


def _check(new: NewRefund) -> None:
    if not new.reason.strip():
        raise InvalidRequest("A refund needs its reason.", param="reason")
    if new.amount_nanos is not None and new.amount_nanos <= 0:
        raise InvalidRequest("A refund is above zero.", param="amount_nanos")


def _uuid(request_id: str) -> UUID:
    try:
        return uuid_of(request_id)
    except ValueError:
        raise _missing() from None


def _missing() -> NotFound:
    return NotFound("There is no such request.", code="request_not_found")


def _other_transaction() -> Unprocessable:
    return Unprocessable("This transaction_id was booked for something else; take a new one.", param="transaction_id")


async def _charged(connection: AsyncConnection, request: UUID) -> _Row:
    """Read what a finished request was charged: its usage row never changes."""
    columns = (usage.c.id, usage.c.account_id, usage.c.api_key_id, usage.c.created_at, usage.c.charge_nanos)
    row = (await connection.execute(select(*columns).where(usage.c.id == request))).one_or_none()
    if row is not None:
        return row
    open_now = await connection.execute(select(1).where(open_request.c.id == request))
    if open_now.one_or_none() is None:
        raise _missing()
    raise Conflict("The request has not ended, so nothing is charged yet; cancel it.", code="request_open")


async def _give(connection: AsyncConnection, charged: _Row, new: NewRefund, by: Actor) -> Refund:
    """Give back under the account's lock, or answer the refund that this transaction id already is."""
    number = new.transaction_id or uuid4()
    found = (await connection.execute(select(refund).where(refund.c.id == number))).one_or_none()
    if found is not None:
        if found.request_id != charged.id or new.amount_nanos not in {None, found.amount_nanos}:
            raise _other_transaction()
        return _told(found)
    left = charged.charge_nanos - await _given_back(connection, charged.id)
    amount = left if new.amount_nanos is None else new.amount_nanos
    if amount > left or amount == 0:
        raise Unprocessable(
            f"Of the charge of ${usd_text(charged.charge_nanos)}, ${usd_text(left)} can still be given back.",
            code="refund_above_charge",
            param="amount_nanos",
        )
    movement = Movement(amount_nanos=amount, kind="refund", reason=new.reason, transaction_id=number)
    if await already_booked(connection, charged.account_id, movement) or await _is_request(connection, number):
        raise _other_transaction()
    await _move(connection, charged, amount)
    await book_entries(connection, charged.account_id, movement, against=REVENUE)
    made = await _write(connection, charged, movement, by)
    await _tell(connection, by, made, left)
    return made


async def _given_back(connection: AsyncConnection, request: UUID) -> int:
    total = select(func.coalesce(func.sum(refund.c.amount_nanos), 0)).where(refund.c.request_id == request)
    return int((await connection.execute(total)).scalar_one())


async def _is_request(connection: AsyncConnection, number: UUID) -> bool:
    """Say whether a transaction id is that of a charge."""
    return (await connection.execute(select(1).where(usage.c.id == number))).one_or_none() is not None


async def _move(connection: AsyncConnection, charged: _Row, amount: int) -> None:
    """Move from spent to available, and take the amount off the budgets that the request counts against."""
    await connection.execute(
        update(account)
        .where(account.c.id == charged.account_id)
        .values(available_nanos=account.c.available_nanos + amount, spent_nanos=account.c.spent_nanos - amount)
    )
    await connection.execute(
        update(api_key)
        .where(api_key.c.id == charged.api_key_id)
        .values(used_nanos=func.greatest(api_key.c.used_nanos - amount, 0))
    )
    owners = [(OWNER_KINDS.index("account"), charged.account_id), (OWNER_KINDS.index("key"), charged.api_key_id)]
    await connection.execute(
        update(spending_limit)
        .where(
            tuple_(spending_limit.c.owner_kind, spending_limit.c.owner_id).in_(owners),
            spending_limit.c.since <= charged.created_at,
        )
        .values(used_nanos=func.greatest(spending_limit.c.used_nanos - amount, 0))
    )


async def _write(connection: AsyncConnection, charged: _Row, movement: Movement, by: Actor) -> Refund:
    values = {
        "id": movement.transaction_id,
        "request_id": charged.id,
        "account_id": charged.account_id,
        "api_key_id": charged.api_key_id,
        "amount_nanos": movement.amount_nanos,
        "actor": by.name,
        "reason": movement.reason,
    }
    return _told((await connection.execute(insert(refund).values(values).returning(refund))).one())


async def _tell(connection: AsyncConnection, by: Actor, made: Refund, left: int) -> None:
    changes = {
        "refund_id": (None, made.id),
        "refunded_nanos": (None, made.amount_nanos),
        "refundable_nanos": (left, left - made.amount_nanos),
        "reason": (None, made.reason),
    }
    action = Action(name="request.refund", object_kind="request", object_id=made.request_id, changes=changes)
    await write_audit(connection, by, action)


def _told(row: _Row) -> Refund:
    return Refund(
        id=row.id,
        at=row.at,
        request_id=request_id_of(row.request_id),
        account_id=row.account_id,
        api_key_id=row.api_key_id,
        amount_nanos=row.amount_nanos,
        actor=row.actor,
        reason=row.reason,
    )
