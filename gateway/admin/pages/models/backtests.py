"""Backtests: begun from a draft, followed at an address of their own."""

from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import percent_text
from gateway.admin.pages.models.editing import edit
from gateway.admin.pages.models.editor import editor_page
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.catalog.prices import row_text
from gateway.catalog.snapshot import SnapshotSource
from gateway.errors import InvalidRequest
from gateway.pricing.backtest import Backtest, DiscountDraft, Sums
from gateway.reports.backtest.jobs import Backtests

_FIELDS = Sums.__struct_fields__
COLUMNS = ("kind", "id", "name", "account_id", *_FIELDS, "change_nanos")


@action("/admin/prices/backtest", needs="billing")
async def begin_backtest(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], catalog: NamedDependency[SnapshotSource]
) -> Response[Any]:
    """Ask for a backtest of a draft."""
    items = [(name, value) for name, value in (await view.request.form()).multi_items() if isinstance(value, str)]
    named = dict(items)
    editing = await edit(engine, catalog, items, named.get("model", ""))
    if editing.draft.errors:
        return await editor_page(view, engine, editing, status=422, problem="This draft cannot be rated as it is.")
    if not named.get("days", "").isdecimal():
        raise InvalidRequest("'days' is a whole number.", param="days")
    made = await Backtests(engine).begin(editing.asked, int(named["days"][:4]), view.actor.name)
    return view.redirect(f"/admin/backtests/{made.id}?{editing.draft.query}")


@page("/admin/backtests/{backtest_id:str}", data=False)
async def show_backtest(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], backtest_id: FromPath[str]
) -> Response[Any]:
    """Show how far a backtest is, or what it found."""
    found = await Backtests(engine).read(backtest_id)
    if view.format == "json":
        return view.json(found)
    if view.format == "csv":
        return view.csv(f"backtest-{backtest_id}", COLUMNS, _cells(found))
    return view.render("models/backtest.html", **_shown(view, found))


@page("/admin/backtests/{backtest_id:str}/progress", data=False)
async def show_progress(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], backtest_id: FromPath[str]
) -> Response[Any]:
    """Show the part of a backtest's page that changes while it runs."""
    found = await Backtests(engine).read(backtest_id)
    return view.render("models/progress.html", **_shown(view, found))


@action("/admin/backtests/{backtest_id:str}/cancel", needs="billing")
async def cancel_backtest(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], backtest_id: FromPath[str]
) -> Response[Any]:
    """Call a backtest off."""
    await Backtests(engine).cancel(backtest_id)
    return view.redirect(f"/admin/backtests/{backtest_id}", toast="The backtest is called off.")


def _shown(view: View, found: Backtest) -> dict[str, Any]:
    draft = found.draft
    if isinstance(draft, DiscountDraft):
        off = percent_text(draft.discount_ppm)
        return {
            "job": found,
            "what": f"{off}% off for account {draft.account_id}",
            "editor": f"/admin/accounts/{draft.account_id}/pricing?discount={off}",
            "rows": [],
        }
    query = view.request.url.query
    return {
        "job": found,
        "what": draft.model,
        "editor": f"/admin/models/{draft.model}{f'?{query}' if query else ''}",
        "rows": [row_text(part) for part in draft.components],
    }


def _cells(found: Backtest) -> list[list[Any]]:
    if found.result is None:
        return []
    return [
        [
            kind,
            group.id,
            group.name,
            group.account_id,
            *(getattr(group.sums, name) for name in _FIELDS),
            group.sums.change_nanos,
        ]
        for kind, groups in (("account", found.result.by_account), ("key", found.result.by_key))
        for group in groups
    ]
