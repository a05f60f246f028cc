"""The audit log, read: who changed what, the latest first."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.operators import audit
from gateway.db.reading import reading
from gateway.errors import NotFound
from gateway.reports.ranges import Range

MOST_COUNTED = 10_000
MOST_EXPORTED = 50_000


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One change."""

    id: int
    at: datetime
    actor: str
    role: str
    door: str
    action: str
    object_kind: str
    object_id: str
    request_id: str
    changes: Mapping[str, Sequence[Any]]
    """Each changed field, before and after."""


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes; an empty filter is none."""

    range: Range
    actor: str = ""
    role: str = ""
    door: str = ""
    action: str = ""
    """A whole action, or the beginning of one: `key.` is all that is done to keys."""
    object_kind: str = ""
    object_id: str = ""
    after: int = 0
    """The id of the last entry of the page before."""
    limit: int = 50


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of entries, the latest first."""

    entries: list[AuditEntry]
    counted: int
    """All that match, counted up to one above MOST_COUNTED."""
    next_after: int | None


async def read_audit(engine: AsyncEngine, query: AuditQuery) -> AuditPage:
    """Read a page. Raises Unavailable."""
    matches = select(audit).where(*_conditions(query))
    page = matches.order_by(audit.c.id.desc()).limit(query.limit + 1)
    if query.after:
        page = page.where(audit.c.id < query.after)
    counted = select(func.count()).select_from(
        select(audit.c.id).where(*_conditions(query)).limit(MOST_COUNTED + 1).subquery()
    )
    async with reading(engine) as connection:
        rows = (await connection.execute(page)).all()
        total = (await connection.execute(counted)).scalar_one()
    entries = [_entry(row) for row in rows[: query.limit]]
    return AuditPage(entries=entries, counted=total, next_after=entries[-1].id if len(rows) > query.limit else None)


async def show_audit(engine: AsyncEngine, entry_id: int) -> AuditEntry:
    """Read one entry. Raises NotFound, or Unavailable."""
    async with reading(engine) as connection:
        row = (await connection.execute(select(audit).where(audit.c.id == entry_id))).one_or_none()
    if row is None:
        raise NotFound("There is no such entry in the audit log.")
    return _entry(row)


def _conditions(query: AuditQuery) -> list[Any]:
    found: list[Any] = [audit.c.at >= query.range.from_at, audit.c.at < query.range.to_at]
    wanted = {name: getattr(query, name) for name in ("actor", "role", "door", "object_kind", "object_id")}
    found += [audit.c[name] == value for name, value in wanted.items() if value]
    if query.action.endswith("."):
        found.append(audit.c.action.startswith(query.action, autoescape=True))
    elif query.action:
        found.append(audit.c.action == query.action)
    return found


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**{name: getattr(row, name) for name in AuditEntry.__struct_fields__})
