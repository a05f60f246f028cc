"""Accounts: who pays, and the money that comes in from outside.

Every movement is a transaction of two ledger entries that sum to zero, booked in the same commit as the
account's figures. `topped_up_nanos` is all money from outside: top-ups and adjustments, less what an
adjustment took back, so that it always equals available + held + spent.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import MOST_NANOS, account, api_key
from gateway.db.catalog import price_list
from gateway.db.ledger import OUTSIDE
from gateway.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from gateway.ledger.audit import Action, Actor, Changes, write_audit
from gateway.ledger.movements import (
    Movement,
    already_booked,
    book_entries,
    list_accounts,
    lock_account,
    show_account,
)
from gateway.ledger.records import Account, AccountKind
from gateway.ledger.revisions import next_keys_revision
from gateway.ledger.transaction import transaction
from gateway.money import usd_text
from gateway.net.addresses import UrlNotAllowed
from gateway.net.client import check_url
from gateway.pricing.terms import WHOLE_PPM

_MOST = f"at most ${usd_text(MOST_NANOS)}"

MOST_KEEP_S = 10 * 366 * 86_400
"""The longest that media are kept, ten years."""

MAX_PAGE = 1000
"""The most accounts or keys that one list answers."""


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account to be made; its balance is booked as a top-up."""

    name: str
    kind: AccountKind = "prepaid"
    balance_nanos: int = 0
    credit_limit_nanos: int = 0


class Accounts:
    """Creates and lists accounts, and books the money that comes from outside.

    Each change takes by whom it is made, for the audit log; without that it is the system's own, and not in the log.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def create(self, new: NewAccount, by: Actor | None = None) -> Account:
        """Create an account with its opening balance. Raises InvalidRequest, or Conflict where the name is taken."""
        _check_new(new)
        made = insert(account).values(name=new.name, kind=new.kind, credit_limit_nanos=new.credit_limit_nanos)
        try:
            async with transaction(self._engine) as connection:
                account_id = (await connection.execute(made.returning(account.c.id))).scalar_one()
                if new.balance_nanos:
                    await _book(connection, account_id, _top_up(new.balance_nanos, "opening balance"))
                given = {name: (None, value) for name, value in msgspec.structs.asdict(new).items()}
                return await _changed(connection, by, "create", account_id, given)
        except IntegrityError as error:
            if "account_name_key" not in str(error):
                raise
            raise Conflict(
                "There is an account of this name; choose another.", code="name_taken", param="name"
            ) from None

    async def list(self, *, after_id: int = 0, limit: int = MAX_PAGE) -> Sequence[Account]:
        """List accounts by id, from the one after `after_id`."""
        async with transaction(self._engine) as connection:
            return await list_accounts(connection, after_id=after_id, limit=min(limit, MAX_PAGE))

    async def show(self, account_id: int) -> Account:
        """Show one account. Raises NotFound."""
        async with transaction(self._engine) as connection:
            return await show_account(connection, account_id)

    async def top_up(
        self,
        account_id: int,
        amount_nanos: int,
        *,
        reason: str = "",
        transaction_id: UUID | None = None,
        by: Actor | None = None,
    ) -> Account:
        """Book money that came in. Raises NotFound or InvalidRequest."""
        if not 0 < amount_nanos <= MOST_NANOS:
            raise InvalidRequest(f"A top-up is above zero, {_MOST}; to take money back, adjust.", param="amount_nanos")
        async with transaction(self._engine) as connection:
            return await move(connection, account_id, _top_up(amount_nanos, reason, transaction_id), by)

    async def adjust(
        self,
        account_id: int,
        amount_nanos: int,
        *,
        reason: str,
        transaction_id: UUID | None = None,
        by: Actor | None = None,
    ) -> Account:
        """Correct a balance up or down, with the reason. Raises NotFound, InvalidRequest or Unprocessable."""
        if amount_nanos == 0 or abs(amount_nanos) > MOST_NANOS:
            raise InvalidRequest(f"An adjustment is not zero, {_MOST}.", param="amount_nanos")
        if not reason.strip():
            raise InvalidRequest("An adjustment needs its reason.", param="reason")
        movement = Movement(
            amount_nanos=amount_nanos, kind="adjustment", reason=reason, transaction_id=transaction_id or uuid4()
        )
        async with transaction(self._engine) as connection:
            return await move(connection, account_id, movement, by)

    async def set_credit_limit(self, account_id: int, credit_limit_nanos: int, by: Actor | None = None) -> Account:
        """Change how far a postpaid account may go below zero. Raises NotFound, InvalidRequest or Unprocessable."""
        _check_limit(credit_limit_nanos)
        async with transaction(self._engine) as connection:
            found = await lock_account(connection, account_id)
            if found.kind != "postpaid":
                raise Unprocessable("A prepaid account has no credit limit.", param="credit_limit_nanos")
            if found.available_nanos < -credit_limit_nanos:
                raise Unprocessable(
                    f"The account owes ${usd_text(-found.available_nanos)}; the limit cannot be below that.",
                    code="balance_too_low",
                    param="credit_limit_nanos",
                )
            changes = {"credit_limit_nanos": (found.credit_limit_nanos, credit_limit_nanos)}
            return await _set(connection, by, "credit_limit", account_id, changes)

    async def set_retention(self, account_id: int, keep_media_s: int | None, by: Actor | None = None) -> Account:
        """Say for how long outputs and media of this account are kept; None is the system's own time.

        Holds for what ends, and for files that are uploaded, from now on. Raises NotFound or InvalidRequest.
        """
        if keep_media_s is not None and not 0 < keep_media_s <= MOST_KEEP_S:
            raise InvalidRequest(f"Media are kept for 1 to {MOST_KEEP_S} seconds.", param="keep_media_s")
        async with transaction(self._engine) as connection:
            found = await lock_account(connection, account_id)
            changes = {"keep_media_s": (found.keep_media_s, keep_media_s)}
            return await _set(connection, by, "retention", account_id, changes)

    async def set_alert_url(self, account_id: int, alert_url: str | None, by: Actor | None = None) -> Account:
        """Say where the account is told of budgets that run out; None is nowhere. Raises NotFound or InvalidRequest."""
        plain = None if alert_url is None else _webhook_address(alert_url)
        async with transaction(self._engine) as connection:
            found = await lock_account(connection, account_id)
            return await _set(connection, by, "alert_url", account_id, {"alert_url": (found.alert_url, plain)})

    async def set_pricing(
        self,
        account_id: int,
        *,
        list_name: str | None,
        discount_ppm: int,
        by: Actor | None = None,
        reason: str = "",
    ) -> Account:
        """Say whose prices an account pays, and what is off them in millionths; None is the list price.

        Holds for what is admitted from now on, within a second. Raises NotFound or InvalidRequest.
        """
        if not 0 <= discount_ppm <= WHOLE_PPM:
            raise InvalidRequest(f"A discount is 0 to {WHOLE_PPM} millionths.", param="discount_ppm")
        async with transaction(self._engine) as connection:
            found = await lock_account(connection, account_id)
            list_id = await _price_list(connection, list_name)
            await _stamp(connection, account_id)
            changes: dict[str, tuple[Any, Any]] = {
                "price_list_id": (found.price_list_id, list_id),
                "discount_ppm": (found.discount_ppm, discount_ppm),
            }
            return await _set(connection, by, "pricing", account_id, changes, reason)

    async def suspend(self, account_id: int, by: Actor | None = None) -> Account:
        """Stop all keys of an account, within a second in every gateway; open requests go on. Raises NotFound."""
        return await self._set_suspended(account_id, by, suspended=True)

    async def resume(self, account_id: int, by: Actor | None = None) -> Account:
        """Let the keys of a suspended account work again. Raises NotFound."""
        return await self._set_suspended(account_id, by, suspended=False)

    async def _set_suspended(self, account_id: int, by: Actor | None, *, suspended: bool) -> Account:
        async with transaction(self._engine) as connection:
            found = await lock_account(connection, account_id)
            if suspended is (found.suspended_at is not None):
                return found
            await connection.execute(
                update(account).where(account.c.id == account_id).values(suspended_at=func.now() if suspended else None)
            )
            await _stamp(connection, account_id)
            changes = {"suspended": (not suspended, suspended)}
            return await _changed(connection, by, "suspend" if suspended else "resume", account_id, changes)


async def move(connection: AsyncConnection, account_id: int, movement: Movement, by: Actor | None = None) -> Account:
    """Book money from outside in a transaction of the caller's, once for each transaction id.

    Raises NotFound, InvalidRequest or Unprocessable.
    """
    found = await lock_account(connection, account_id)
    if await already_booked(connection, account_id, movement):
        return found
    if found.topped_up_nanos + movement.amount_nanos > MOST_NANOS:
        raise InvalidRequest(f"All that is topped up is {_MOST}.", param="amount_nanos")
    await _book(connection, account_id, movement)
    changes: dict[str, tuple[Any, Any]] = {
        "available_nanos": (found.available_nanos, found.available_nanos + movement.amount_nanos),
        "reason": (None, movement.reason),
        "transaction_id": (None, movement.transaction_id),
    }
    return await _changed(connection, by, movement.kind, account_id, changes)


async def _stamp(connection: AsyncConnection, account_id: int) -> None:
    """Let all gateways read the keys of an account again."""
    number = await next_keys_revision(connection)
    await connection.execute(update(api_key).where(api_key.c.account_id == account_id).values(revision=number))


async def _price_list(connection: AsyncConnection, name: str | None) -> int | None:
    if name is None:
        return None
    found = (await connection.execute(select(price_list.c.id).where(price_list.c.name == name))).scalar_one_or_none()
    if found is None:
        raise NotFound("There is no such price list.", code="price_list_not_found", param="price_list")
    return int(found)


def _check_new(new: NewAccount) -> None:
    if not new.name.strip():
        raise InvalidRequest("An account needs a name.", param="name")
    if not 0 <= new.balance_nanos <= MOST_NANOS:
        raise InvalidRequest(f"An opening balance is zero or more, {_MOST}.", param="balance_nanos")
    if new.credit_limit_nanos and new.kind == "prepaid":
        raise InvalidRequest("A prepaid account has no credit limit; make it postpaid.", param="credit_limit_nanos")
    _check_limit(new.credit_limit_nanos)


def _webhook_address(text: str) -> str:
    try:
        return str(check_url(text))
    except UrlNotAllowed:
        raise UrlNotAllowed("alert_url") from None


def _check_limit(credit_limit_nanos: int) -> None:
    if not 0 <= credit_limit_nanos <= MOST_NANOS:
        raise InvalidRequest(f"A credit limit is zero or more, {_MOST}.", param="credit_limit_nanos")


def _top_up(amount_nanos: int, reason: str, transaction_id: UUID | None = None) -> Movement:
    return Movement(amount_nanos=amount_nanos, kind="top_up", reason=reason, transaction_id=transaction_id or uuid4())


async def _set(
    connection: AsyncConnection,
    by: Actor | None,
    verb: str,
    account_id: int,
    changes: Mapping[str, tuple[Any, Any]],
    reason: str = "",
) -> Account:
    """Write the new values of columns of a locked account; the reason goes into the audit log."""
    values = {name: after for name, (_, after) in changes.items()}
    await connection.execute(update(account).where(account.c.id == account_id).values(values))
    told = {**changes, "reason": (None, reason)} if reason else changes
    return await _changed(connection, by, verb, account_id, told)


async def _changed(
    connection: AsyncConnection, by: Actor | None, verb: str, account_id: int, changes: Changes
) -> Account:
    """Write what was changed into the audit log, and show the account as it stands then."""
    action = Action(name=f"account.{verb}", object_kind="account", object_id=str(account_id), changes=changes)
    await write_audit(connection, by, action)
    return await show_account(connection, account_id)


async def _book(connection: AsyncConnection, account_id: int, movement: Movement) -> None:
    """Book a movement from outside on a locked account: its figures, and two entries that sum to zero."""
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
    await book_entries(connection, account_id, movement, against=OUTSIDE)
