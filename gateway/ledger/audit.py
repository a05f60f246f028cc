"""Who changed what: one row for each change by an operator, written in the transaction that changes."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import msgspec
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.operators import audit

Door = Literal["dashboard", "api", "cli", "file"]
"""Where a change came in."""

Changes = Mapping[str, tuple[Any, Any]]
"""Each changed field, before and after; None where there was or is none."""

MOST_TEXT = 2000
"""A longer text is cut in the audit row; the object itself has all of it."""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who changes something."""

    name: str
    """An e-mail, or which key they hold."""
    role: str
    door: Door
    request_id: str = ""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to which object."""

    name: str
    """An object's kind and a verb: `key.revoke`."""
    object_kind: str
    object_id: str
    changes: Changes = {}


async def write_audit(connection: AsyncConnection, actor: Actor | None, action: Action) -> int:
    """Write the row of a change, in the transaction that makes it; answers its id.

    Without an actor nothing is written and the answer is 0: the system did it by itself.
    """
    if actor is None:
        return 0
    row = {
        "actor": actor.name,
        "role": actor.role,
        "door": actor.door,
        "request_id": actor.request_id,
        "action": action.name,
        "object_kind": action.object_kind,
        "object_id": action.object_id,
        "changes": {field: [_plain(before), _plain(after)] for field, (before, after) in action.changes.items()},
    }
    return int((await connection.execute(insert(audit).values(row).returning(audit.c.id))).scalar_one())


def differences(before: msgspec.Struct | None, after: msgspec.Struct | None, *, leave: frozenset[str]) -> Changes:
    """Compare two states of an object field by field, without the fields to leave out."""
    old = msgspec.structs.asdict(before) if before is not None else {}
    new = msgspec.structs.asdict(after) if after is not None else {}
    names = [name for name in {**old, **new} if name not in leave]
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def _plain(value: Any) -> Any:
    """Give a value as JSON keeps it exactly: whole numbers beyond a double's reach as text."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, str):
        return value[:MOST_TEXT]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return _plain(msgspec.to_builtins(value))
