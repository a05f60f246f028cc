"""The verdict, the thirteen invariants, and ninety days of them: stored results, nothing is computed here."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.books.advice import Advice, Offender, advice_of, offenders_of
from gateway.admin.pages.books.calendar import DAYS, Calendar, calendar_of
from gateway.admin.site.cards import cards
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.ledger.books.figures import Check
from gateway.ledger.books.runs import BooksRun, BooksRuns
from gateway.ledger.corrections import Corrections
from gateway.ledger.payments import Payments
from gateway.ledger.refunds import Refunds

LATEST = 8
"""How many refunds, corrections and payments the page shows of each."""
_RED_FIRST = {"broken": 0, "not drained": 1, "holds": 2}
_COLUMNS = (
    "invariant", "statement", "verdict", "left_name", "left", "right_name", "right", "difference", "unit", "broken",
    "first", "note", "checked_at",
)  # fmt: skip


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A check as it is drawn."""

    check: Check
    advice: Advice
    offenders: Sequence[Offender]


@page("/admin/books")
async def show_books(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Show the last verification."""
    return await _show(view, engine, await BooksRuns(engine).latest())


@page("/admin/books/runs/{run_id:uuid}")
async def show_run(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], run_id: FromPath[UUID]
) -> Response[Any]:
    """Show one verification."""
    return await _show(view, engine, await BooksRuns(engine).show(run_id), is_latest=False)


async def _show(view: View, engine: AsyncEngine, run: BooksRun | None, *, is_latest: bool = True) -> Response[Any]:
    if view.format == "json":
        return view.json(run)
    if view.format == "csv":
        rows = [_cells(run, one) for one in run.report.checks] if run else []
        return view.csv("books", _COLUMNS, rows)
    drawn: dict[str, Any] = await cards(
        view.page_id,
        calendar=_calendar(engine, view),
        refunds=Refunds(engine).list(limit=LATEST),
        corrections=Corrections(engine).list(limit=LATEST),
        payments=Payments(engine).list(limit=LATEST),
    )
    return view.render("books.html", run=run, rows=rows_of(run), is_latest=is_latest, **drawn)


def rows_of(run: BooksRun | None) -> list[Row]:
    """Give the checks of a verification, red first, then in the order of the invariants."""
    checks = sorted(run.report.checks, key=lambda one: _RED_FIRST[one.verdict]) if run else []
    return [Row(check=one, advice=advice_of(one), offenders=offenders_of(one)) for one in checks]


async def _calendar(engine: AsyncEngine, view: View) -> Calendar:
    now = datetime.now(UTC)
    return calendar_of(await BooksRuns(engine).calendar(now - timedelta(days=DAYS)), now.date())


def _cells(run: BooksRun, one: Check) -> tuple[object, ...]:
    unit = "nanos" if advice_of(one).is_money else "count"
    first, at = " ".join(one.offenders), run.at.isoformat()
    return (
        one.invariant, one.statement, one.verdict, one.left_name, one.left, one.right_name, one.right, one.difference,
        unit, one.broken, first, one.note, at,
    )  # fmt: skip


SHOW_PAGES = (show_books, show_run)
