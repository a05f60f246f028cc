"""`/usage`: what the key of the session spent, on what, and what is left."""

from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.spend_chart import spend_chart
from gateway.admin.site.cards import cards
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.contract.units import UNIT_NAMES
from gateway.reports.budget_left import budget_left
from gateway.reports.csv_text import csv_of
from gateway.reports.figures import Figures, FiguresTable
from gateway.reports.query import UsageQuery
from gateway.reports.scope import Dimension, Scope, Sums
from gateway.reports.usage import UsageReport

BY: tuple[Dimension, ...] = ("model", "task", "outcome")
UNIT_WORDS = {
    "input_tokens": "input tokens",
    "cached_tokens": "of them cached",
    "output_tokens": "output tokens",
    "reasoning_tokens": "of them reasoning",
    "characters": "characters",
    "images": "images",
    "pixels": "pixels",
    "steps": "steps",
    "audio_ms": "ms of sound",
    "video_ms": "ms of video",
}


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The range and the one it is compared with."""

    now: Sums
    before: Sums


@page("/usage", needs="key", data=False)  # the cookie's path, /usage, takes in no /usage.csv: `?format=` does
async def show_usage(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Show a key's owner what the key spent."""
    scope = Scope(key_id=view.visitor.api_key_id)
    if view.format != "html":
        return await _data(view, engine, scope)
    figures, period = Figures(engine), view.period
    found: dict[str, Any] = await cards(
        view.page_id,
        left=budget_left(engine, view.visitor.api_key_id),
        compared=_compared(figures, view, scope),
        spend=spend_chart(engine, period, scope),
        **{by: figures.table(period.range, scope, by=by, units=True) for by in BY},
    )
    return view.render("owner/usage.html", by=BY, units=_units, notes=_outcome_notes, **found)


async def _compared(figures: Figures, view: View, scope: Scope) -> Compared:
    now, before = await figures.compared(view.period.range, view.period.before, scope)
    return Compared(now=now, before=before)


async def _data(view: View, engine: AsyncEngine, scope: Scope) -> Response[Any]:
    """Answer with the report that `GET /v1/usage` gives, by day, model, task and outcome."""
    asked = UsageQuery(range=view.period.range, scope=scope, group_by=("day", "model", "task", "outcome"))
    table = await UsageReport(engine).read(asked)
    if view.format == "json":
        return view.json(table)
    headers = {"content-disposition": 'attachment; filename="usage.csv"'}
    return Response(csv_of(table), media_type="text/csv; charset=utf-8", headers=headers)


def _units(sums: Sums) -> list[tuple[str, int]]:
    """Give what was measured, in words."""
    return [(UNIT_WORDS[name], count) for name in UNIT_NAMES if (count := getattr(sums.units, name))]


def _outcome_notes(table: FiguresTable) -> dict[str, str]:
    """Say of each outcome whether it was charged."""
    return {
        row.outcome or "": "not charged"
        if row.sums.charge_nanos == 0
        else ("charged for what was produced" if row.outcome != "succeeded" else "")
        for row in table.rows
    }
