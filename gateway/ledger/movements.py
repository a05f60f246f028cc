"""Movements of money: the account's lock, the look whether one stands already, and the entries that sum to zero.

Who moves money on an account locks it first and books in the same transaction: nothing then comes between what
was judged and what is written. In which of its figures the money shows is for the caller to say.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.accounts import account
from gateway.db.ledger import LEDGER_KINDS, LedgerKind, ledger_entry
from gateway.errors import NotFound, Unprocessable
from gateway.ledger.records import Account

_SHOWN = [column for column in account.c if column.name != "limited"]


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """Money to an account, or from it where negative. Repeating a `transaction_id` books nothing twice."""

    amount_nanos: int
    kind: LedgerKind
    reason: str
    transaction_id: UUID


async def show_account(connection: AsyncConnection, account_id: int) -> Account:
    """Show an account as it stands. Raises NotFound."""
    row = (await connection.execute(select(*_SHOWN).where(account.c.id == account_id))).mappings().one_or_none()
    if row is None:
        raise _missing()
    return Account(**row)


async def lock_account(connection: AsyncConnection, account_id: int) -> Account:
    """Lock an account as admission does: new keys may still refer to it. Raises NotFound."""
    wanted = select(*_SHOWN).where(account.c.id == account_id).with_for_update(key_share=True)
    row = (await connection.execute(wanted)).mappings().one_or_none()
    if row is None:
        raise _missing()
    return Account(**row)


async def list_accounts(connection: AsyncConnection, *, after_id: int, limit: int) -> Sequence[Account]:
    """List accounts by id, from the one after `after_id`."""
    wanted = select(*_SHOWN).where(account.c.id > after_id).order_by(account.c.id).limit(limit)
    return [Account(**row) for row in (await connection.execute(wanted)).mappings()]


async def already_booked(connection: AsyncConnection, account_id: int, movement: Movement) -> bool:
    """Say whether the movement stands in the ledger of a locked account.

    Raises Unprocessable where its transaction stands there with another amount or kind.
    """
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


async def book_entries(connection: AsyncConnection, account_id: int, movement: Movement, *, against: int) -> None:
    """Write the two entries of a movement: on the account, and with the other sign on the one it came from."""
    entry = {
        "transaction_id": movement.transaction_id,
        "kind": LEDGER_KINDS.index(movement.kind),
        "reason": movement.reason or None,
    }
    await connection.execute(
        insert(ledger_entry),
        [
            {**entry, "account_id": account_id, "amount_nanos": movement.amount_nanos},
            {**entry, "account_id": against, "amount_nanos": -movement.amount_nanos},
        ],
    )


def _missing() -> NotFound:
    return NotFound("There is no such account.", code="account_not_found")
