"""Corrections: a ledger transaction of two lines with a reason, where something was booked wrongly. Never an edit.

A side is an account, the revenue, or the outside. What a correction gives an account counts as money from outside, or
back to it, so that top-ups stay equal to available, held and spent; what accounts have spent changes by charges and
refunds alone.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import Row, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import MOST_NANOS, account
from gateway.db.ledger import LEDGER_KINDS, OUTSIDE, REVENUE, ledger_entry
from gateway.db.usage import usage
from gateway.errors import InvalidRequest, Unprocessable
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.movements import lock_account
from gateway.ledger.records import Correction, Line
from gateway.ledger.transaction import transaction
from gateway.money import usd_text

MAX_PAGE = 500
KIND = LEDGER_KINDS.index("adjustment")
_ACCOUNT = re.compile(r"account:([1-9][0-9]{0,17})")
_NAMES = {REVENUE: "revenue", OUTSIDE: "outside"}


class NewCorrection(msgspec.Struct, frozen=True, kw_only=True):
    """A correction to be made. Repeating a `transaction_id` books nothing twice."""

    lines: tuple[Line, Line]
    reason: str
    transaction_id: UUID | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a correction does to one account."""

    account_id: int
    name: str
    available_before: int
    available_after: int


_LIST = text("""
select transaction_id as id, min(at) as at, max(reason) as reason,
  array_agg(account_id order by amount_nanos desc) as accounts,
  array_agg(amount_nanos order by amount_nanos desc) as amounts
from (
  select * from ledger_entry where kind = 3 and transaction_id in (
    select transaction_id from ledger_entry
    where kind = 3 and amount_nanos > 0 and at <= coalesce(cast(:before as timestamptz), 'infinity')
    order by at desc limit :most
  )
) chosen group by transaction_id order by 2 desc, 1
""")


class Corrections:
    """Books corrections, and lists them."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def effects(self, new: NewCorrection) -> Sequence[Effect]:
        """Say what a correction would do. Raises InvalidRequest, NotFound or Unprocessable; changes nothing."""
        lines = _checked(new)
        async with transaction(self._engine) as connection:
            return [await _effect(connection, number, amount) for number, amount in lines if number > 0]

    async def post(self, new: NewCorrection, by: Actor) -> Correction:
        """Book a correction, once for a transaction id.

        Raises InvalidRequest, NotFound where there is no such account, and Unprocessable where an account would give
        more than it has, or the transaction id is that of something else.
        """
        lines, number = _checked(new), new.transaction_id or uuid4()
        async with transaction(self._engine) as connection:
            await connection.execute(text("select pg_advisory_xact_lock(hashtext(:id))"), {"id": f"ledger {number}"})
            for account_id in sorted(side for side, _ in lines if side > 0):
                await lock_account(connection, account_id)
            if await _stands(connection, number, lines):
                return await _show(connection, number)
            effects = [await _effect(connection, side, amount) for side, amount in lines if side > 0]
            for effect, amount in zip(effects, (amount for side, amount in lines if side > 0), strict=True):
                await _move(connection, effect.account_id, amount)
            entry = {"transaction_id": number, "kind": KIND, "reason": new.reason.strip()}
            rows = [{**entry, "account_id": side, "amount_nanos": amount} for side, amount in lines]
            await connection.execute(insert(ledger_entry), rows)
            await _tell(connection, by, number, new, effects)
            return await _show(connection, number)

    async def list(self, *, before: datetime | None = None, limit: int = 100) -> Sequence[Correction]:
        """List corrections and adjustments, the latest first, from those of `before` on."""
        async with transaction(self._engine) as connection:
            rows = await connection.execute(_LIST, {"before": before, "most": min(limit, MAX_PAGE)})
            return [_told(row) for row in rows]


def side_of(written: str) -> int:
    """Read a side as the ledger numbers it. Raises InvalidRequest."""
    found = _ACCOUNT.fullmatch(written)
    if found:
        return int(found[1])
    for number, name in _NAMES.items():
        if written == name:
            return number
    raise InvalidRequest("A side is 'account:' with its id, 'revenue' or 'outside'.", param="side")


def side_name(number: int) -> str:
    """Write a side of the ledger."""
    return _NAMES.get(number, f"account:{number}")


def _checked(new: NewCorrection) -> list[tuple[int, int]]:
    """Read the lines. Raises InvalidRequest."""
    lines = [(side_of(line.side), line.amount_nanos) for line in new.lines]
    if not new.reason.strip():
        raise InvalidRequest("A correction needs its reason.", param="reason")
    if lines[0][0] == lines[1][0]:
        raise InvalidRequest("A correction has two different sides.", param="side")
    total = sum(amount for _, amount in lines)
    if total:
        raise InvalidRequest(
            f"The two amounts must sum to zero; they sum to ${usd_text(total)}.",
            code="not_balanced",
            param="amount_nanos",
        )
    if not 0 < abs(lines[0][1]) <= MOST_NANOS:
        raise InvalidRequest(f"An amount is not zero, and at most ${usd_text(MOST_NANOS)}.", param="amount_nanos")
    return lines


async def _effect(connection: AsyncConnection, account_id: int, amount: int) -> Effect:
    """Say what a line does to an account. Raises NotFound or Unprocessable."""
    found = await lock_account(connection, account_id)
    after = found.available_nanos + amount
    if amount < 0 and after < -found.credit_limit_nanos:
        raise Unprocessable(
            f"{found.name} has ${usd_text(found.available_nanos)} available; its holds are not.",
            code="balance_too_low",
            param="amount_nanos",
        )
    if found.topped_up_nanos + amount > MOST_NANOS:
        raise InvalidRequest(f"All that is topped up is at most ${usd_text(MOST_NANOS)}.", param="amount_nanos")
    return Effect(account_id=account_id, name=found.name, available_before=found.available_nanos, available_after=after)


async def _stands(connection: AsyncConnection, number: UUID, lines: list[tuple[int, int]]) -> bool:
    """Say whether this very correction is booked. Raises Unprocessable where its id is that of something else."""
    sides = [side for side, _ in lines]
    mine = select(ledger_entry.c.account_id, ledger_entry.c.amount_nanos, ledger_entry.c.kind).where(
        ledger_entry.c.account_id.in_(sides), ledger_entry.c.kind != 0, ledger_entry.c.transaction_id == number
    )
    rows = {(row.account_id, row.amount_nanos, row.kind) for row in await connection.execute(mine)}
    if rows == {(side, amount, KIND) for side, amount in lines}:
        return True
    charge = await connection.execute(select(1).where(usage.c.id == number))
    if rows or charge.one_or_none() is not None:
        raise Unprocessable(
            "This transaction_id was booked for something else; take a new one.", param="transaction_id"
        )
    return False


async def _move(connection: AsyncConnection, account_id: int, amount: int) -> None:
    moved = update(account).where(account.c.id == account_id)
    try:
        await connection.execute(
            moved.values(
                topped_up_nanos=account.c.topped_up_nanos + amount, available_nanos=account.c.available_nanos + amount
            )
        )
    except IntegrityError:
        raise Unprocessable("This would take more than the account has.", code="balance_too_low") from None


async def _tell(
    connection: AsyncConnection, by: Actor, number: UUID, new: NewCorrection, effects: Sequence[Effect]
) -> None:
    changes: dict[str, tuple[Any, Any]] = {line.side: (None, line.amount_nanos) for line in new.lines}
    for effect in effects:
        changes[f"account:{effect.account_id} available_nanos"] = (effect.available_before, effect.available_after)
    changes["reason"] = (None, new.reason.strip())
    await write_audit(
        connection, by, Action(name="ledger.correct", object_kind="ledger", object_id=str(number), changes=changes)
    )


async def _show(connection: AsyncConnection, number: UUID) -> Correction:
    wanted = text("""
        select transaction_id as id, min(at) as at, max(reason) as reason,
          array_agg(account_id order by amount_nanos desc) as accounts,
          array_agg(amount_nanos order by amount_nanos desc) as amounts
        from ledger_entry where kind = 3 and transaction_id = :id group by 1""")
    return _told((await connection.execute(wanted, {"id": number})).one())


def _told(row: Row[Any]) -> Correction:
    lines = (
        Line(side=side_name(side), amount_nanos=amount) for side, amount in zip(row.accounts, row.amounts, strict=True)
    )
    return Correction(id=row.id, at=row.at, lines=tuple(lines), reason=row.reason or "")
