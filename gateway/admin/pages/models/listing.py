"""Models: what each costs and earns."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.live.sampler import Sampler
from gateway.admin.site.cards import Card, card
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.catalog.discovery import AVAILABLE, Availability, availability
from gateway.catalog.model import Model, Snapshot
from gateway.catalog.prices import row_text
from gateway.catalog.snapshot import SnapshotSource
from gateway.contract.pools import WorkerStatus
from gateway.contract.tasks import TASKS
from gateway.errors import InvalidRequest
from gateway.ledger.prices.records import PriceRecord
from gateway.ledger.prices.store import PriceStore
from gateway.money import usd_text
from gateway.reports.figures import Figures, FiguresTable
from gateway.reports.scope import NOTHING, Sums
from gateway.reports.series import Step

MOST_MODELS = 1_000
COLUMNS = (
    *("model", "tasks", "price", "next_change", "charge_nanos", "cost_nanos", "margin_nanos"),
    *("requests", "p95_ms", "state"),
)
SORTS = ("spend", "margin", "requests", "p95", "name")


class ModelLine(msgspec.Struct, frozen=True, kw_only=True):
    """A model with its price, its figures and how it stands."""

    model: Model
    price: str
    free: bool
    scheduled: PriceRecord | None
    sums: Sums
    stands: Availability | None
    trend: Sequence[int] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.model.name

    @property
    def is_priced(self) -> bool:
        """Whether it has a list price."""
        return bool(self.price)

    @property
    def tone(self) -> str:
        """The colour of its state."""
        if self.stands is None:
            return "off"
        return "good" if self.stands.state in AVAILABLE else "bad" if self.stands.state == "failed" else "warn"


def price_words(record: PriceRecord | None) -> str:
    """Write a price in words; empty where there is none."""
    if record is None or not record.rows:
        return ""
    if record.free:
        return "free"
    least = f", at least ${usd_text(record.minimum_nanos)}" if record.minimum_nanos else ""
    return ", ".join(row_text(part) for part in record.rows) + least


@page("/admin/models")
async def list_models(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    figures: NamedDependency[Figures],
    catalog: NamedDependency[SnapshotSource],
    sampler: NamedDependency[Sampler],
) -> Response[Any]:
    """List the models: unpriced first, then by spend."""
    period = view.period
    sums, trends, prices, workers = await asyncio.gather(
        card(figures.table(period.range, by="model", limit=MOST_MODELS), "figures", view.page_id),
        card(_trends(figures, view, catalog.snapshot()), "trends", view.page_id),
        PriceStore(engine).current(),
        card(_workers(sampler), "workers", view.page_id),
    )
    models = catalog.snapshot().models.values()
    lines = _chosen(view, _lines(models, prices, sums, trends, workers.value))
    if view.format == "json":
        return view.json({"models": [dict(zip(COLUMNS, _cells(line), strict=True)) for line in lines]})
    if view.format == "csv":
        return view.csv("models", COLUMNS, [_cells(line) for line in lines])
    return view.render(
        "models/list.html",
        lines=lines,
        figures=sums,
        total=sums.value.total if sums.value else NOTHING,
        pools=sorted({route.pool for model in models for route in model.routes}),
        tasks=[task for task in TASKS if any(task in model.tasks for model in models)],
        chips=[(name, label, view.query[name]) for name, label in _FILTERS.items() if view.query.get(name)],
        in_all=len(models),
    )


_FILTERS = {"q": "Name", "task": "Task", "pool": "Pool", "scheduled": "Scheduled", "negative": "Negative margin"}


async def _workers(sampler: Sampler) -> list[WorkerStatus]:
    now = await sampler.now()
    return [line.status for line in now.workers if line.stand != "silent"]


async def _trends(figures: Figures, view: View, catalog: Snapshot) -> Mapping[str, Sequence[int]]:
    """Give the charges of each model, hour by hour or day by day."""
    period = view.period
    step: Step = "day" if period.is_daily else "hour"
    lines = await figures.charge_lines(period.range, by="model", step=step, zone_name=period.zone_name)
    return {model.name: lines[model.id] for model in catalog.models.values() if model.id in lines}


def _lines(
    models: Iterable[Model],
    prices: Sequence[PriceRecord],
    figures: Card[FiguresTable],
    trends: Card[Mapping[str, Sequence[int]]],
    workers: Sequence[WorkerStatus] | None,
) -> list[ModelLine]:
    listed = [each for each in prices if each.price_list is None]
    now = {each.model: each for each in listed if each.state == "in_force"}
    coming: dict[str, PriceRecord] = {}
    for each in prices:
        if each.state == "scheduled" and (each.model not in coming or each.valid_from < coming[each.model].valid_from):
            coming[each.model] = each
    sums = {group.model: group.sums for group in figures.value.rows} if figures.value else {}
    return [
        ModelLine(
            model=model,
            price=price_words(now.get(model.name)),
            free=model.name in now and now[model.name].free,
            scheduled=coming.get(model.name),
            sums=sums.get(model.name, NOTHING),
            stands=availability(model, workers) if workers is not None else None,
            trend=(trends.value or {}).get(model.name, ()),
        )
        for model in models
    ]


def _chosen(view: View, lines: Iterable[ModelLine]) -> list[ModelLine]:
    """Filter and order by what the address says."""
    query = view.query
    wanted = query.get("q", "").lower()
    sort = query.get("sort", "")
    if sort.lstrip("-") not in ("", *SORTS):
        raise InvalidRequest(f"'sort' is one of {', '.join(SORTS)}, with '-' for the largest first.", param="sort")
    found = [
        line
        for line in lines
        if wanted in line.name.lower()
        and query.get("task") in (None, "", *line.model.tasks)
        and query.get("pool") in (None, "", *(route.pool for route in line.model.routes))
        and (not query.get("scheduled") or line.scheduled)
        and (not query.get("negative") or line.sums.margin_nanos < 0)
    ]
    found.sort(key=lambda line: line.name)
    if not sort:
        return sorted(found, key=lambda line: (line.is_priced, -line.sums.charge_nanos))
    return sorted(found, key=lambda line: _by(line, sort.lstrip("-")), reverse=sort.startswith("-"))


def _by(line: ModelLine, name: str) -> Any:
    known = {
        "spend": line.sums.charge_nanos,
        "margin": line.sums.margin_nanos,
        "requests": line.sums.requests,
        "p95": line.sums.p95_us or 0,
        "name": line.name,
    }
    return known[name]


def _cells(line: ModelLine) -> list[Any]:
    changes: datetime | None = line.scheduled.valid_from if line.scheduled else None
    sums = line.sums
    return [
        *(line.name, " ".join(line.model.tasks), line.price or None, changes.isoformat() if changes else None),
        *(sums.charge_nanos, sums.cost_nanos, sums.margin_nanos, sums.requests),
        round(sums.p95_us / 1000) if sums.p95_us is not None else None,
        line.stands.state if line.stands else None,
    ]
