"""The overview itself."""

import asyncio
from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.live.sampler import Sampler
from gateway.admin.pages.overview import money, sentences
from gateway.admin.pages.overview.sentences import Sentence
from gateway.admin.pages.overview.start import read_start
from gateway.admin.site.cards import Card, card
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.catalog.snapshot import SnapshotSource
from gateway.ledger.books.runs import BooksRuns
from gateway.reports.budgets import near_budgets
from gateway.reports.figures import Figures
from gateway.reports.movers import Mover

MOVERS = 10


@page("/admin")
async def show_overview(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    figures: NamedDependency[Figures],
    sampler: NamedDependency[Sampler],
    catalog: NamedDependency[SnapshotSource],
    base_url: NamedDependency[str],
) -> Response[Any]:
    """Show the health of the system; before its first request, how to begin."""
    start = await card(read_start(engine, catalog, base_url), "start", view.page_id)
    if start.value is not None and not start.value.is_over and view.format == "html":
        return view.render("overview_start.html", start=start.value)
    period = view.period
    both, movers, said = await asyncio.gather(
        card(money.read_both(figures, period), "spend", view.page_id),
        card(figures.movers(period.range, period.before, limit=MOVERS), "movers", view.page_id),
        _sentences(view, engine, sampler, catalog),
    )
    if both.value is not None:
        said.append(sentences.about_errors(both.value.sums, both.value.sums_before, period))
    said = sentences.worst_first(said)
    if view.format != "html":
        return _data(view, both, movers, said)
    return view.render("overview.html", said=said, both=both, movers=movers, money=money)


async def _sentences(view: View, engine: AsyncEngine, sampler: Sampler, catalog: SnapshotSource) -> list[Sentence]:
    """Gather the sentences that do not come from the figures; one that cannot be made says so."""
    run, near, look = await asyncio.gather(
        card(BooksRuns(engine).latest(), "books", view.page_id),
        card(near_budgets(engine), "budgets", view.page_id),
        card(sampler.now(), "queues", view.page_id),
    )
    said = [sentences.about_prices(catalog.snapshot())]
    if run.failure:
        said.append(Sentence(tone="off", icon="book", text=f"Books: {run.failure}", href="/admin/books"))
    else:
        said.append(sentences.about_books(run.value, view.period))
    if near.value is not None:
        said.append(sentences.about_budgets(near.value))
    else:
        said.append(Sentence(tone="off", icon="key", text=f"Budgets: {near.failure}", href="/admin/keys"))
    if look.value is not None:
        said += [sentences.about_waiting(look.value), sentences.about_workers(look.value)]
    return said


def _data(view: View, both: Card[money.Both], movers: Card[tuple[Mover, ...]], said: list[Sentence]) -> Response[Any]:
    series = both.value.now if both.value is not None else None
    if view.format == "json":
        return view.json({"sentences": said, "series": series, "movers": movers.value})
    rows = [] if series is None else [
        [at.isoformat(), line.label, sums.charge_nanos, sums.cost_nanos, sums.requests, sums.errors]
        for line in series.lines
        for at, sums in zip(series.at, line.sums, strict=True)
    ]  # fmt: skip
    return view.csv("overview", ["at", "model", "charge_nanos", "cost_nanos", "requests", "errors"], rows)
