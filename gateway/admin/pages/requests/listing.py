"""The list of requests, newest first, with a histogram of their outcomes."""

from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.requests.asked import FIELDS, OUTCOME_CHOICES, Asked, read_asked
from gateway.admin.site.cards import cards
from gateway.admin.site.charts import Chart, Line
from gateway.admin.site.figures import count, share, usd
from gateway.admin.site.page import page
from gateway.admin.site.period import Period
from gateway.admin.site.view import View
from gateway.contract.tasks import TASKS
from gateway.reports.figures import Figures
from gateway.reports.request_list import (
    PAGE,
    OpenRow,
    RequestRow,
    list_open,
    list_requests,
    model_choices,
    open_now,
)
from gateway.reports.scope import Sums, add_up
from gateway.reports.series import Series, Step

MOST_EXPORTED = 10_000
COLOURS = {"succeeded": 2, "failed": 4, "expired": 3, "cancelled": 0}
ORDER = tuple(COLOURS)
CSV_COLUMNS = (
    "id", "created_at", "finished_at", "account_id", "account", "key_id", "key", "model", "task", "outcome", "reason",
    "queue_us", "total_us", "charge_nanos", "refunded_nanos", "cost_nanos", "attempts", "route",
)  # fmt: skip


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the list: finished requests or open ones."""

    rows: list[RequestRow] = []
    open: list[OpenRow] = []
    next_after: str | None = None


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The histogram, and the sums of the whole range."""

    chart: Chart
    sentence: str
    total: Sums


@page("/admin/requests")
async def show_requests(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List requests."""
    asked = await read_asked(engine, view.query, view.period.range)
    if view.format != "html":
        return await _export(view, engine, asked)
    found: dict[str, Any] = await cards(
        view.page_id,
        listed=_listed(engine, asked),
        outcomes=_outcomes(engine, asked, view.period),
        open_now=open_now(engine),
        models=model_choices(engine),
    )
    listed: Listed | None = found["listed"].value
    newest = listed.rows[0].id if listed and listed.rows and not view.query.get("after") else ""
    return view.render(
        "requests.html",
        asked=asked,
        tasks=TASKS,
        outcome_choices=OUTCOME_CHOICES,
        newest=newest,
        fields=FIELDS,
        **found,
    )


async def _listed(engine: AsyncEngine, asked: Asked) -> Listed:
    if asked.problem:
        return Listed()
    if asked.is_open:
        wanted = asked.wanted
        rows = await list_open(
            engine,
            account_id=wanted.account_id,
            key_id=wanted.key_id,
            model_id=wanted.model_id,
            after=wanted.after,
            limit=PAGE + 1,
        )
        return Listed(open=rows[:PAGE], next_after=rows[PAGE - 1].id if len(rows) > PAGE else None)
    found = await list_requests(engine, asked.wanted, limit=PAGE + 1)
    return Listed(rows=found[:PAGE], next_after=found[PAGE - 1].id if len(found) > PAGE else None)


async def _outcomes(engine: AsyncEngine, asked: Asked, period: Period) -> Outcomes | None:
    if asked.problem or asked.is_open:
        return None
    during = period.range
    step: Step = "day" if period.is_daily else "hour"
    series = await Figures(engine).series(
        during, asked.scope, step=step, zone_name=period.zone_name, by="outcome", top=len(COLOURS)
    )
    total = add_up(series.total)
    return Outcomes(chart=_chart(series, period), sentence=_sentence(total), total=total)


def _chart(series: Series, period: Period) -> Chart:
    found = {line.value: line for line in series.lines}
    lines = [
        Line(label=outcome, values=[one.requests for one in found[outcome].sums], colour=COLOURS[outcome])
        for outcome in ORDER
        if outcome in found
    ] or [Line(label="requests", values=[0 for _ in series.at], colour=2)]
    return Chart(
        at=series.at,
        series=lines,
        zone_name=period.zone_name,
        unit="count",
        shape="stack",
        daily=period.is_daily,
        selects=True,
    )


def _sentence(total: Sums) -> str:
    if not total.requests:
        return "No request ended in this range."
    words = f"{count(total.requests)} requests ended, charged {usd(total.charge_nanos)}"
    if not total.errors:
        return f"{words}; none failed. Drag to choose a range."
    errors = f"{count(total.errors)} failed or expired ({share(total.errors, total.requests)})"
    return f"{words}; {errors}. Drag to choose a range."


async def _export(view: View, engine: AsyncEngine, asked: Asked) -> Response[Any]:
    rows = [] if asked.problem else await list_requests(engine, asked.wanted, limit=MOST_EXPORTED)
    if view.format == "csv":
        return view.csv("requests", CSV_COLUMNS, [[_cell(row, name) for name in CSV_COLUMNS] for row in rows])
    return view.json({"requests": rows, "is_whole": len(rows) < MOST_EXPORTED})


def _cell(row: RequestRow, name: str) -> object:
    value = getattr(row, name)
    return value.isoformat() if name.endswith("_at") else value
