"""Audit: who changed what, and how it was before."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.figures import NOTHING, usd_exact
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.errors import InvalidRequest
from gateway.reports.audit_log import MOST_EXPORTED, AuditEntry, AuditQuery, read_audit, show_audit

FILTERS = ("actor", "role", "door", "action", "object_kind", "object_id")
LABELS = {"object_kind": "Kind", "object_id": "Id"}
DOORS = ("dashboard", "api", "cli", "file")
COLUMNS = ("id", "at", "actor", "role", "door", "action", "object_kind", "object_id", "request_id", "changes")
PATHS: Mapping[str, str] = {
    "account": "/admin/accounts/{}",
    "key": "/admin/keys/{}",
    "request": "/admin/requests/{}",
    "model": "/admin/models/{}",
    "worker": "/admin/queues",
    "pool": "/admin/queues",
    "refund": "/admin/books",
}
"""Where the objects of each kind are shown."""
_LONG = 160


class Difference(msgspec.Struct, frozen=True):
    """One field before and after, as text."""

    field: str
    before: str
    after: str


@page("/admin/audit")
async def list_audit(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List the changes of a period, the latest first."""
    given = {name: view.query.get(name, "").strip() for name in FILTERS}
    query = AuditQuery(range=view.period.range, after=_after(view.query.get("after", "")))
    query = msgspec.structs.replace(query, **given)
    if view.format != "html":
        return _export(view, (await read_audit(engine, _all(query))).entries)
    found = await read_audit(engine, query)
    chips = [(name, LABELS.get(name, name.capitalize()), value) for name, value in given.items() if value]
    rows = [(entry, differences(entry)) for entry in found.entries]
    return view.render("audit.html", page=found, rows=rows, chips=chips, doors=DOORS, path_of=path_of)


@page("/admin/audit/{entry_id:int}", data=False)
async def show_entry(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], entry_id: FromPath[int]
) -> Response[Any]:
    """Show one change whole."""
    entry = await show_audit(engine, entry_id)
    if view.format == "json":
        return view.json(entry)
    return view.render("audit_entry.html", entry=entry, differences=differences(entry, whole=True), path_of=path_of)


def _all(query: AuditQuery) -> AuditQuery:
    return msgspec.structs.replace(query, after=0, limit=MOST_EXPORTED)


def _after(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidRequest("'after' is the id of an entry.", param="after")
    return int(text or 0)


def _export(view: View, entries: Sequence[AuditEntry]) -> Response[Any]:
    if view.format == "json":
        return view.json({"entries": entries})
    plain = [[_cell(getattr(entry, name)) for name in COLUMNS] for entry in entries]
    return view.csv("audit", COLUMNS, plain)


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        return json.dumps(value, separators=(",", ":"), sort_keys=True)
    return value.isoformat() if hasattr(value, "isoformat") else value


def differences(entry: AuditEntry, *, whole: bool = False) -> list[Difference]:
    """Write what changed, field by field: amounts as money, long texts cut unless `whole`."""
    return [
        Difference(name.removesuffix("_nanos").replace("_", " "), *(_text(name, value, whole) for value in pair[:2]))
        for name, pair in entry.changes.items()
    ]


def path_of(kind: str, object_id: str) -> str:
    """Give the address where an object is shown; empty where there is none."""
    path = PATHS.get(kind, "")
    return path.format(object_id) if object_id.replace("_", "").replace("-", "").replace(".", "").isalnum() else ""


def _text(name: str, value: Any, whole: bool) -> str:
    if value is None or value == "":
        return NOTHING
    if name.endswith("_nanos") and str(value).lstrip("-").isdigit():
        return usd_exact(int(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if whole or len(text) <= _LONG else text[:_LONG] + "…"


PAGES = (list_audit, show_entry)
