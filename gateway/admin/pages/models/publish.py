"""Publishing a draft: asked with its effect in figures, done with a reason, refused with both differences."""

import asyncio
import time
from datetime import UTC
from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.models.differences import shown
from gateway.admin.pages.models.editing import Editing, edit
from gateway.admin.pages.models.editor import editor_page
from gateway.admin.site.figures import change, count, usd
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.catalog.snapshot import SnapshotSource
from gateway.errors import Unavailable, Unprocessable
from gateway.ledger.prices.conflict import PriceConflict
from gateway.ledger.prices.records import Draft, Publication
from gateway.ledger.prices.store import PriceStore
from gateway.queues.port import QueueUnavailable
from gateway.queues.revisions import Revisions, gateways_at

SEEN_S = 1.5
LOOK_S = 0.05
MOST_REASON = 500


@page("/admin/prices/publish", needs="billing", data=False)
async def ask_publish(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], catalog: NamedDependency[SnapshotSource]
) -> Response[Any]:
    """Say what publishing a draft does, in figures."""
    editing = await edit(engine, catalog, list(view.request.query_params.multi_items()), view.query.get("model", ""))
    if editing.draft.errors:
        return await editor_page(view, engine, editing, status=422, problem="This draft cannot be published as it is.")
    return _question(view, editing)


@action("/admin/prices/publish", needs="billing")
async def publish(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    revisions: NamedDependency[Revisions],
) -> Response[Any]:
    """Make the version."""
    items = [(name, value) for name, value in (await view.request.form()).multi_items() if isinstance(value, str)]
    named = dict(items)
    editing = await edit(engine, catalog, items, named.get("model", ""))
    draft, reason = editing.draft, named.get("reason", "").strip()[:MOST_REASON]
    if draft.errors:
        return await editor_page(view, engine, editing, status=422, problem="This draft cannot be published as it is.")
    if not reason and editing.fresh is None:
        told = {"reason": "Say why, or run a backtest of this draft first."}
        return _question(view, editing, status=422, errors=told)
    new = Publication(
        model=editing.model.name,
        draft=Draft(rows=draft.sold.rows, minimum_nanos=draft.minimum_nanos, outcome=draft.outcome, free=draft.free),
        price_list=draft.price_list or None,
        valid_from=draft.valid_from,
        base=draft.base,
        reason=reason or f"after backtest {editing.fresh.id if editing.fresh else ''}",
    )
    try:
        done = await PriceStore(engine).publish(new, view.actor)
    except PriceConflict as conflict:
        theirs, yours = shown(conflict.theirs), shown(conflict.yours)
        return view.render(
            "models/conflict.html", status=409, conflict=conflict, editing=editing, theirs=theirs, yours=yours
        )
    except Unprocessable as error:
        return await _refused(view, engine, editing, error)
    seen = await _seen(catalog, revisions, done.revision)
    verb = "scheduled" if draft.valid_from else "published"
    back = f"/admin/models/{editing.model.name}{f'?list={draft.price_list}' if draft.price_list else ''}"
    return view.redirect(back, toast=f"Version {done.price.id} is {verb}. {seen}", audit_id=done.audit_id)


def _question(
    view: View, editing: Editing, *, status: int = 200, errors: dict[str, str] | None = None
) -> Response[Any]:
    return view.render(
        "models/publish.html",
        status=status,
        editing=editing,
        draft=editing.draft,
        effects=effects(editing),
        errors=errors or {},
    )


def effects(editing: Editing) -> list[str]:
    """Say in figures what publishing the draft does."""
    draft, fresh = editing.draft, editing.fresh
    when = f"From {draft.valid_from.astimezone(UTC):%-d %b %Y %H:%M} UTC" if draft.valid_from else "From now"
    whom = (
        f"accounts with the price list {draft.price_list}"
        if draft.price_list
        else "everybody whose price list says nothing of it"
    )
    changes = [f"{each.text()}." for each in editing.changes]
    said = [f"{when}, for {whom}:" if changes else f"{when}, for {whom}, nothing changes.", *changes]
    if fresh is not None and fresh.result is not None:
        total = fresh.result.total
        sign = "+" if total.change_nanos >= 0 else ""
        said.append(
            f"{count(fresh.result.keys)} keys, {sign}{usd(total.change_nanos)} "
            f"({change(total.after_nanos, total.before_nanos)}) on the last {fresh.days} days."
        )
        for many, text in (
            (total.unrated, "could not be rated"),
            (total.unsold, "would be refused"),
            (total.capped, "would pass their hold"),
        ):
            if many:
                said.append(f"{count(many)} requests {text}.")
    else:
        said.append("No backtest of this draft has been run: what it would have brought is not known.")
    if not draft.sold.rows:
        said.append(
            "It is not for sale from then on." if not draft.price_list else "The list price counts from then on."
        )
    said.append("Requests that are admitted already keep their price.")
    return said


async def _refused(view: View, engine: AsyncEngine, editing: Editing, error: Unprocessable) -> Response[Any]:
    field = {"free": "free", "valid_from": "at"}.get(error.param or "", "")
    editing.draft.errors[field] = error.message
    return await editor_page(view, engine, editing, status=422, problem=error.message)


async def _seen(catalog: SnapshotSource, revisions: Revisions, revision: int) -> str:
    """Say how many gateways have a change, once all of them have it or a second and a half has passed."""
    began = time.monotonic()
    try:
        await catalog.refresh()
        while True:
            found = await gateways_at(revisions, revision)
            took_s = time.monotonic() - began
            if (found.gateways and found.having == found.gateways) or took_s > SEEN_S:
                return f"{found.having} of {found.gateways} gateways have it, {took_s:.1f} s."
            await asyncio.sleep(LOOK_S)
    except (Unavailable, QueueUnavailable):
        return "Gateways follow within a second."
