"""API keys: what a caller presents. A key is shown once; only the SHA-256 of the whole of it is stored."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import account, api_key
from gateway.errors import InvalidRequest, NotFound, TooManyRequests
from gateway.ledger.accounts import MAX_PAGE
from gateway.ledger.audit import Action, Actor, differences, write_audit
from gateway.ledger.permits import checked_addresses, checked_models
from gateway.ledger.records import Issued, Key
from gateway.ledger.revisions import next_keys_revision
from gateway.ledger.transaction import transaction
from gateway.money import MAX_NANOS

SCHEME = "fg_live_"
RANDOM_BYTES = 32
SHOWN_CHARACTERS = len(SCHEME) + 4
"""How much of a key is kept for display: 24 of its 256 random bits."""
MAX_LIVE_KEYS = 100_000
"""Every gateway holds all live keys in memory: about 40 MB at this bound."""

_SHOWN = [column for column in api_key.c if column.name not in {"hash", "limited", "revision", "budget_alerted"}]
_PASSING = frozenset({"id", "created_at", "last_used_at", "used_nanos"})
"""What changes of a key without anybody changing it."""


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key to be made. Without a budget the account alone is the limit."""

    account_id: int
    name: str = ""
    budget_nanos: int | None = None
    expires_at: datetime | None = None
    models: Sequence[str] | None = None
    """What it may call: names, and patterns in which `*` is any text; None is every model."""
    addresses: Sequence[str] | None = None
    """From where: addresses and networks (CIDR); None is anywhere."""


class KeyEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What of a key is to be another; what is not given stays as it is."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    budget_nanos: int | msgspec.UnsetType | None = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType | None = msgspec.UNSET
    models: Sequence[str] | msgspec.UnsetType | None = msgspec.UNSET
    addresses: Sequence[str] | msgspec.UnsetType | None = msgspec.UNSET


def hash_of(secret: str) -> bytes:
    """Hash a whole key, as it is stored and looked up."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Keys:
    """Makes, lists, edits and revokes API keys.

    Each change takes by whom it is made, for the audit log; without that it is the system's own, and not in the log.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def create(self, new: NewKey, by: Actor | None = None) -> Issued:
        """Make a key. Raises InvalidRequest, NotFound for its account, or TooManyRequests at MAX_LIVE_KEYS."""
        given = _checked(msgspec.structs.asdict(new))
        secret = SCHEME + secrets.token_urlsafe(RANDOM_BYTES)
        values = {**given, "hash": hash_of(secret), "prefix": secret[:SHOWN_CHARACTERS]}
        async with transaction(self._engine) as connection:
            owner = await connection.execute(select(account.c.id).where(account.c.id == new.account_id))
            if owner.one_or_none() is None:
                raise NotFound("There is no such account.", code="account_not_found", param="account_id")
            await _check_room(connection)
            number = await next_keys_revision(connection)
            made = insert(api_key).values(**values, revision=number).returning(api_key.c.id)
            key_id = (await connection.execute(made)).scalar_one()
            shown = await _changed(connection, by, "create", None, key_id)
            return Issued(**msgspec.structs.asdict(shown), key=secret)

    async def list(self, *, account_id: int | None = None, after_id: int = 0, limit: int = MAX_PAGE) -> Sequence[Key]:
        """List keys by id, of one account or of all, from the one after `after_id`."""
        wanted = select(*_SHOWN).where(api_key.c.id > after_id).order_by(api_key.c.id).limit(min(limit, MAX_PAGE))
        if account_id is not None:
            wanted = wanted.where(api_key.c.account_id == account_id)
        async with transaction(self._engine) as connection:
            return [Key(**row) for row in (await connection.execute(wanted)).mappings()]

    async def show(self, key_id: int) -> Key:
        """Show one key. Raises NotFound."""
        async with transaction(self._engine) as connection:
            return await _show(connection, key_id)

    async def revoke(self, key_id: int, by: Actor | None = None) -> Key:
        """Stop a key for good, within a second in every gateway; revoking it again changes nothing. Raises NotFound."""
        async with transaction(self._engine) as connection:
            number = await next_keys_revision(connection)
            before = await _show(connection, key_id)
            live = update(api_key).where(api_key.c.id == key_id, api_key.c.revoked_at.is_(None))
            await connection.execute(live.values(revoked_at=func.now(), revision=number))
            return await _changed(connection, by, "revoke", before, key_id)

    async def edit(self, key_id: int, edit: KeyEdit, by: Actor | None = None) -> Key:
        """Change what a key is called, may do, and until when. Raises NotFound or InvalidRequest.

        Every gateway knows it within a second. What is open ends as it began.
        """
        given = msgspec.structs.asdict(edit)
        values = _checked({name: value for name, value in given.items() if value is not msgspec.UNSET})
        async with transaction(self._engine) as connection:
            number = await next_keys_revision(connection)
            before = await _show(connection, key_id)
            if "budget_nanos" in values:
                values["budget_alerted"] = _still_told(values["budget_nanos"])
            await connection.execute(update(api_key).where(api_key.c.id == key_id).values(**values, revision=number))
            return await _changed(connection, by, "edit", before, key_id)

    async def set_budget(self, key_id: int, budget_nanos: int | None, by: Actor | None = None) -> Key:
        """Change what a key may spend in all; None lifts the limit. Raises NotFound or InvalidRequest."""
        return await self.edit(key_id, KeyEdit(budget_nanos=budget_nanos), by)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Check fields of a key, and give them as they are stored. Raises InvalidRequest."""
    budget_nanos, expires_at = given.get("budget_nanos"), given.get("expires_at")
    if budget_nanos is not None and not 0 <= budget_nanos <= MAX_NANOS:
        raise InvalidRequest("A budget is zero or more, or null for none.", param="budget_nanos")
    if expires_at is not None and (expires_at.tzinfo is None or expires_at <= datetime.now(UTC)):
        raise InvalidRequest("A key expires at an instant in the future, with its time zone.", param="expires_at")
    lists = {"models": checked_models, "addresses": checked_addresses}
    return given | {name: read(given[name]) for name, read in lists.items() if name in given}


def _still_told(budget_nanos: int | None) -> Any:
    """Give the highest threshold that stays told under another budget: the others are told again when they are met."""
    if budget_nanos is None:
        return 0
    return func.least(api_key.c.budget_alerted, func.limit_reached(api_key.c.used_nanos, budget_nanos))


async def _changed(connection: AsyncConnection, by: Actor | None, verb: str, before: Key | None, key_id: int) -> Key:
    """Write what was changed into the audit log, and show the key as it stands then."""
    after = await _show(connection, key_id)
    changes = differences(before, after, leave=_PASSING)
    if changes:
        action = Action(name=f"key.{verb}", object_kind="key", object_id=str(key_id), changes=changes)
        await write_audit(connection, by, action)
    return after


async def _check_room(connection: AsyncConnection) -> None:
    live = or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > func.now())
    count = select(func.count()).select_from(api_key).where(api_key.c.revoked_at.is_(None), live)
    if (await connection.execute(count)).scalar_one() >= MAX_LIVE_KEYS:
        raise TooManyRequests(
            f"There are {MAX_LIVE_KEYS:,} live keys, the most that gateways hold; revoke some first.",
            code="too_many_keys",
        )


async def _show(connection: AsyncConnection, key_id: int) -> Key:
    row = (await connection.execute(select(*_SHOWN).where(api_key.c.id == key_id))).mappings().one_or_none()
    if row is None:
        raise NotFound("There is no such key.", code="key_not_found")
    return Key(**row)
