"""Accounts: who pays, and the money that comes in from outside.

Every movement is a transaction of two ledger entries that sum to zero, booked in the same commit as the
account's figures. `topped_up_nanos` is all money from outside: top-ups and adjustments, less what an
adjustment took back, so that it always equals available + held + spent.
"""

from collections.abc import Sequence
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import MOST_NANOS, account, api_key
from gateway.db.ledger import LEDGER_KINDS, OUTSIDE, LedgerKind, ledger_entry
from gateway.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from gateway.ledger.records import Account, AccountKind
from gateway.ledger.revisions import next_keys_revision
from gateway.ledger.transaction import transaction
from gateway.money import usd_text

_MOST = f"at most ${usd_text(MOST_NANOS)}"

MAX_PAGE = 1000
"""The most accounts or keys that one list answers."""


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account to be made; its balance is booked as a top-up."""

    name: str
    kind: AccountKind = "prepaid"
    balance_nanos: int = 0
    credit_limit_nanos: int = 0


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """Money from outside to an account, or back where negative. Repeating a `transaction_id` books nothing twice."""

    amount_nanos: int
    kind: LedgerKind
    reason: str
    transaction_id: UUID


class Accounts:
    """Creates and lists accounts, and books the money that comes from outside."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def create(self, new: NewAccount) -> Account:
        """Create an account with its opening balance. Raises InvalidRequest, or Conflict where the name is taken."""
        _check_new(new)
        made = insert(account).values(name=new.name, kind=new.kind, credit_limit_nanos=new.credit_limit_nanos)
        try:
            async with transaction(self._engine) as connection:
                account_id = (await connection.execute(made.returning(account.c.id))).scalar_one()
                if new.balance_nanos:
                    await _book(connection, account_id, _top_up(new.balance_nanos, "opening balance"))
                return await _show(connection, account_id)
        except IntegrityError as error:
            if "account_name_key" not in str(error):
                raise
            raise Conflict(
                "There is an account of this name; choose another.", code="name_taken", param="name"
            ) from None

    async def list(self, *, after_id: int = 0, limit: int = MAX_PAGE) -> Sequence[Account]:
        """List accounts by id, from the one after `after_id`."""
        wanted = select(account).where(account.c.id > after_id).order_by(account.c.id).limit(min(limit, MAX_PAGE))
        async with transaction(self._engine) as connection:
            return [Account(**row) for row in (await connection.execute(wanted)).mappings()]

    async def show(self, account_id: int) -> Account:
        """Show one account. Raises NotFound."""
        async with transaction(self._engine) as connection:
            return await _show(connection, account_id)

    async def top_up(
        self, account_id: int, amount_nanos: int, *, reason: str = "", transaction_id: UUID | None = None
    ) -> Account:
        """Book money that came in. Raises NotFound or InvalidRequest."""
        if not 0 < amount_nanos <= MOST_NANOS:
            raise InvalidRequest(f"A top-up is above zero, {_MOST}; to take money back, adjust.", param="amount_nanos")
        return await self._move(account_id, _top_up(amount_nanos, reason, transaction_id))

    async def adjust(
        self, account_id: int, amount_nanos: int, *, reason: str, transaction_id: UUID | None = None
    ) -> Account:
        """Correct a balance up or down, with the reason. Raises NotFound, InvalidRequest or Unprocessable."""
        if amount_nanos == 0 or abs(amount_nanos) > MOST_NANOS:
            raise InvalidRequest(f"An adjustment is not zero, {_MOST}.", param="amount_nanos")
        if not reason.strip():
            raise InvalidRequest("An adjustment needs its reason.", param="reason")
        movement = Movement(
            amount_nanos=amount_nanos, kind="adjustment", reason=reason, transaction_id=transaction_id or uuid4()
        )
        return await self._move(account_id, movement)

    async def set_credit_limit(self, account_id: int, credit_limit_nanos: int) -> Account:
        """Change how far a postpaid account may go below zero. Raises NotFound, InvalidRequest or Unprocessable."""
        _check_limit(credit_limit_nanos)
        async with transaction(self._engine) as connection:
            found = await _lock(connection, account_id)
            if found.kind != "postpaid":
                raise Unprocessable("A prepaid account has no credit limit.", param="credit_limit_nanos")
            if found.available_nanos < -credit_limit_nanos:
                raise Unprocessable(
                    f"The account owes ${usd_text(-found.available_nanos)}; the limit cannot be below that.",
                    code="balance_too_low",
                    param="credit_limit_nanos",
                )
            await connection.execute(
                update(account).where(account.c.id == account_id).values(credit_limit_nanos=credit_limit_nanos)
            )
            return await _show(connection, account_id)

    async def suspend(self, account_id: int) -> Account:
        """Stop all keys of an account, within a second in every gateway; open requests go on. Raises NotFound."""
        return await self._set_suspended(account_id, suspended=True)

    async def resume(self, account_id: int) -> Account:
        """Let the keys of a suspended account work again. Raises NotFound."""
        return await self._set_suspended(account_id, suspended=False)

    async def _move(self, account_id: int, movement: Movement) -> Account:
        async with transaction(self._engine) as connection:
            found = await _lock(connection, account_id)
            if not await _already_booked(connection, account_id, movement):
                if found.topped_up_nanos + movement.amount_nanos > MOST_NANOS:
                    raise InvalidRequest(f"All that is topped up is {_MOST}.", param="amount_nanos")
                await _book(connection, account_id, movement)
            return await _show(connection, account_id)

    async def _set_suspended(self, account_id: int, *, suspended: bool) -> Account:
        async with transaction(self._engine) as connection:
            found = await _lock(connection, account_id)
            if suspended is (found.suspended_at is not None):
                return found
            await connection.execute(
                update(account).where(account.c.id == account_id).values(suspended_at=func.now() if suspended else None)
            )
            number = await next_keys_revision(connection)
            await connection.execute(update(api_key).where(api_key.c.account_id == account_id).values(revision=number))
            return await _show(connection, account_id)


def _check_new(new: NewAccount) -> None:
    if not new.name.strip():
        raise InvalidRequest("An account needs a name.", param="name")
    if not 0 <= new.balance_nanos <= MOST_NANOS:
        raise InvalidRequest(f"An opening balance is zero or more, {_MOST}.", param="balance_nanos")
    if new.credit_limit_nanos and new.kind == "prepaid":
        raise InvalidRequest("A prepaid account has no credit limit; make it postpaid.", param="credit_limit_nanos")
    _check_limit(new.credit_limit_nanos)


def _check_limit(credit_limit_nanos: int) -> None:
    if not 0 <= credit_limit_nanos <= MOST_NANOS:
        raise InvalidRequest(f"A credit limit is zero or more, {_MOST}.", param="credit_limit_nanos")


def _top_up(amount_nanos: int, reason: str, transaction_id: UUID | None = None) -> Movement:
    return Movement(amount_nanos=amount_nanos, kind="top_up", reason=reason, transaction_id=transaction_id or uuid4())


def _missing() -> NotFound:
    return NotFound("There is no such account.", code="account_not_found")


async def _show(connection: AsyncConnection, account_id: int) -> Account:
    row = (await connection.execute(select(account).where(account.c.id == account_id))).mappings().one_or_none()
    if row is None:
        raise _missing()
    return Account(**row)


async def _lock(connection: AsyncConnection, account_id: int) -> Account:
    """Lock an account as admission does: new keys may still refer to it."""
    wanted = select(account).where(account.c.id == account_id).with_for_update(key_share=True)
    row = (await connection.execute(wanted)).mappings().one_or_none()
    if row is None:
        raise _missing()
    return Account(**row)


async def _already_booked(connection: AsyncConnection, account_id: int, movement: Movement) -> bool:
    """Say whether the transaction stands in the ledger. Raises Unprocessable where it stands there otherwise."""
    wanted = select(ledger_entry.c.amount_nanos, ledger_entry.c.kind).where(
        ledger_entry.c.account_id == account_id,
        ledger_entry.c.kind != LEDGER_KINDS.index("charge"),
        ledger_entry.c.transaction_id == movement.transaction_id,
    )
    row = (await connection.execute(wanted)).one_or_none()
    if row is None:
        return False
    if (row.amount_nanos, LEDGER_KINDS[row.kind]) != (movement.amount_nanos, movement.kind):
        raise Unprocessable(
            "This transaction_id was booked with another amount or kind; take a new one.", param="transaction_id"
        )
    return True


async def _book(connection: AsyncConnection, account_id: int, movement: Movement) -> None:
    """Book a movement on a locked account: its figures, and two entries that sum to zero."""
    amount = movement.amount_nanos
    moved = update(account).where(account.c.id == account_id)
    try:
        await connection.execute(
            moved.values(
                topped_up_nanos=account.c.topped_up_nanos + amount, available_nanos=account.c.available_nanos + amount
            )
        )
    except IntegrityError:
        raise Unprocessable(
            "This would take more than the account has; its holds are not available.",
            code="balance_too_low",
            param="amount_nanos",
        ) from None
    entry = {
        "transaction_id": movement.transaction_id,
        "kind": LEDGER_KINDS.index(movement.kind),
        "reason": movement.reason or None,
    }
    await connection.execute(
        insert(ledger_entry),
        [
            {**entry, "account_id": account_id, "amount_nanos": amount},
            {**entry, "account_id": OUTSIDE, "amount_nanos": -amount},
        ],
    )
