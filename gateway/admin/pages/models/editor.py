"""The price editor: what changes, for whom, from when."""

from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.models.differences import CHARGED, OUTCOMES
from gateway.admin.pages.models.drafts import BLANKS, DraftRow, per_choices
from gateway.admin.pages.models.editing import Editing, edit
from gateway.admin.pages.models.example import otherwise_of
from gateway.admin.pages.models.history import COLUMNS, cells, history_of
from gateway.admin.pages.models.scopes import scopes_of
from gateway.admin.site.cards import card
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.catalog.snapshot import SnapshotSource
from gateway.pricing.backtest import DAYS
from gateway.pricing.traits import MEASURED_TRAITS


@page("/admin/models/{name:path}", data=False)
async def show_editor(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    name: FromPath[str],
) -> Response[Any]:
    """Show a model's price with its history, and a draft of another."""
    editing = await edit(engine, catalog, list(view.request.query_params.multi_items()), name.removeprefix("/"))
    if view.format == "json":
        return view.json({"model": editing.model.name, "versions": editing.history})
    if view.format == "csv":
        return view.csv(f"{editing.model.name.replace('/', '-')}-versions", COLUMNS, cells(editing.history))
    return await editor_page(view, engine, editing)


@page("/admin/prices/outcome", data=False)
async def show_outcome(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], catalog: NamedDependency[SnapshotSource]
) -> Response[Any]:
    """Show what a draft would cost in an example: the part of the editor that changes as one types."""
    editing = await edit(engine, catalog, list(view.request.query_params.multi_items()), view.query.get("model", ""))
    return view.render("models/outcome.html", **_shown(editing))


async def editor_page(
    view: View, engine: AsyncEngine, editing: Editing, *, status: int = 200, problem: str = ""
) -> Response[Any]:
    """Answer with the editor; `problem` is why something was not done."""
    found = await card(scopes_of(engine, editing), "scopes", view.page_id)
    return view.render(
        "models/editor.html",
        scopes=found,
        status=status,
        problem=problem,
        rows=[*editing.draft.rows, *(DraftRow() for _ in range(BLANKS))],
        pers=per_choices(editing.model, editing.draft),
        traits=[
            *editing.model.priced,
            *dict.fromkeys(t for task in editing.model.tasks for t in MEASURED_TRAITS.get(task, ())),
        ],
        story=history_of(view, editing.history),
        choices=CHARGED,
        **_shown(editing),
    )


def _shown(editing: Editing) -> dict[str, Any]:
    return {
        "editing": editing,
        "draft": editing.draft,
        "example": editing.example,
        "otherwise": otherwise_of(editing.outcome, editing.draft.outcome),
        "days": DAYS,
        "outcomes": OUTCOMES,
    }
