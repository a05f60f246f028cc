"""All refunds, all corrections, and all that payment providers told: lists of the page Books, by keyset."""

from datetime import datetime
from typing import Any
from uuid import UUID

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.errors import InvalidRequest
from gateway.ledger.corrections import Corrections
from gateway.ledger.payments import Payments
from gateway.ledger.refunds import Refunds
from gateway.money import usd_text

PAGE = 100
MOST = 500
"""Rows of a CSV or JSON; the next page is another address."""


@page("/admin/books/refunds")
async def show_refunds(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List refunds, the latest first."""
    at, last = _after(view)
    before = (at, _uuid(last)) if at else None
    rows = await Refunds(engine).list(before=before, limit=_limit(view))
    if view.format == "csv":
        columns = ("at", "refund", "request", "account", "key", "amount_nanos", "amount_usd", "by", "reason")
        cells = [
            (one.at.isoformat(), one.id, one.request_id, one.account_id, one.api_key_id, one.amount_nanos,
             usd_text(one.amount_nanos), one.actor, one.reason) for one in rows
        ]  # fmt: skip
        return view.csv("refunds", columns, cells)
    return _answer(view, "refunds", rows, f"{rows[-1].at.isoformat()}~{rows[-1].id}" if rows else None)


@page("/admin/books/corrections")
async def show_corrections(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List corrections and adjustments, the latest first."""
    at, last = _after(view)
    found = await Corrections(engine).list(before=at, limit=_limit(view) + 1)
    rows = [one for one in found if str(one.id) != last][: _limit(view)]
    if view.format == "csv":
        columns = ("at", "correction", "side", "amount_nanos", "reason")
        cells = [
            (one.at.isoformat(), one.id, line.side, line.amount_nanos, one.reason) for one in rows for line in one.lines
        ]
        return view.csv("corrections", columns, cells)
    return _answer(view, "corrections", rows, f"{rows[-1].at.isoformat()}~{rows[-1].id}" if rows else None)


@page("/admin/books/payments")
async def show_payments(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List what payment providers told, the latest first."""
    at, last = _after(view)
    rows = await Payments(engine).list(before=(at, last) if at else None, limit=_limit(view))
    if view.format == "csv":
        columns = ("at", "provider", "event", "outcome", "account", "amount_nanos", "transaction", "detail")
        cells = [
            (one.at.isoformat(), one.provider, one.event_id, one.outcome, one.account_id, one.amount_nanos,
             one.transaction_id, one.detail) for one in rows
        ]  # fmt: skip
        return view.csv("payments", columns, cells)
    return _answer(view, "payments", rows, f"{rows[-1].at.isoformat()}~{rows[-1].event_id}" if rows else None)


def _answer(view: View, kind: str, rows: Any, last: str | None) -> Response[Any]:
    next_after = last if len(rows) == _limit(view) else None
    if view.format == "json":
        return view.json({kind: rows, "next_after": next_after})
    return view.render("books_list.html", kind=kind, rows=rows, next_after=next_after)


def _limit(view: View) -> int:
    return PAGE if view.format == "html" else MOST


def _after(view: View) -> tuple[datetime | None, str]:
    """Read the key of the last row of the page before. Raises InvalidRequest."""
    written = view.query.get("after", "")
    if not written:
        return None, ""
    at, _, last = written.partition("~")
    try:
        read = datetime.fromisoformat(at)
    except ValueError:
        raise InvalidRequest("'after' is what the page before gave.", param="after") from None
    if read.tzinfo is None or not last or not last.isprintable():
        raise InvalidRequest("'after' is what the page before gave.", param="after")
    return read, last


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidRequest("'after' is what the page before gave.", param="after") from None


LIST_PAGES = (show_refunds, show_corrections, show_payments)
