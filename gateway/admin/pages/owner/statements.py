"""Statements of keys, for their owners, and of accounts, for operators: printed, PDF, CSV, JSON, all alike."""

import re
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.errors import InvalidRequest, NotFound
from gateway.ledger.accounts import Accounts
from gateway.reports.statements.month import read_month
from gateway.reports.statements.pdf import statement_pdf
from gateway.reports.statements.read import Statements, Whose
from gateway.reports.statements.records import Statement
from gateway.reports.statements.shown import shown
from gateway.reports.statements.spent import spent_by_month
from gateway.reports.statements.tables import statement_csv

_NAME = re.compile(r"(\d{4}-\d\d)(?:\.(pdf|csv|json))?")


@page("/usage/statements", needs="key")
async def list_statements(
    view: NamedDependency[View], statements: NamedDependency[Statements], engine: NamedDependency[AsyncEngine]
) -> Response[Any]:
    """List the months of the session's key."""
    return await _list(view, statements, engine, _mine(view), f"What {view.visitor.name} spent", "/usage/statements")


@page("/usage/statements/{name:str}", needs="key", data=False)
async def show_statement(
    view: NamedDependency[View], statements: NamedDependency[Statements], name: FromPath[str]
) -> Response[Any]:
    """Show a statement of the session's key: of its own spending, for a key is not the account."""
    return await _answer(view, statements, _mine(view), name, "/usage/statements")


@page("/admin/accounts/{account_id:int}/statements")
async def list_account_statements(
    view: NamedDependency[View],
    statements: NamedDependency[Statements],
    engine: NamedDependency[AsyncEngine],
    account_id: FromPath[int],
) -> Response[Any]:
    """List the months of any account to an operator."""
    account = await Accounts(engine).show(account_id)
    path = f"/admin/accounts/{account_id}/statements"
    return await _list(view, statements, engine, Whose(account_id), f"Of {account.name}", path)


@page("/admin/accounts/{account_id:int}/statements/{name:str}", data=False)
async def show_account_statement(
    view: NamedDependency[View], statements: NamedDependency[Statements], account_id: FromPath[int], name: FromPath[str]
) -> Response[Any]:
    """Show an operator a statement of any account."""
    return await _answer(view, statements, Whose(account_id), name, f"/admin/accounts/{account_id}/statements")


async def _list(
    view: View, statements: Statements, engine: AsyncEngine, whose: Whose, of: str, path: str
) -> Response[Any]:
    spent = await spent_by_month(engine, whose, await statements.months(whose, view.period.zone_name))
    if view.format == "html":
        return view.render("owner/statements.html", spent=spent, of=of, path=path)
    rows = [(name, sums.requests, sums.charge_nanos) for name, sums in spent.items()]
    columns = ("month", "requests", "charge_nanos")
    if view.format == "json":
        return view.json({"statements": [dict(zip(columns, row, strict=True)) for row in rows]})
    return view.csv("statements", columns, rows)


def _mine(view: View) -> Whose:
    return Whose(view.visitor.account_id, view.visitor.api_key_id)


async def _answer(view: View, statements: Statements, whose: Whose, name: str, back: str) -> Response[Any]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise NotFound("There is no such statement; its address ends like 2026-11, 2026-11.pdf, .csv or .json.")
    paper = view.query.get("paper", "a4")
    if paper not in ("a4", "us-letter"):
        raise InvalidRequest("'paper' is a4 or us-letter.", param="paper")
    statement = await statements.read(whose, read_month(found[1], view.query.get("tz") or "UTC"))
    kind = found[2]
    if kind is None:
        return view.render("owner/statement.html", shown=shown(statement), back=back, path=view.request.url.path)
    owner = whose.account_id if whose.key_id is None else f"key-{whose.key_id}"
    headers = {"content-disposition": f'attachment; filename="statement-{owner}-{statement.month}.{kind}"'}
    if kind == "pdf":
        content = await statement_pdf(statement, "us-letter" if paper == "us-letter" else "a4")
        return Response(content, media_type="application/pdf", headers=headers)
    if kind == "csv":
        return Response(statement_csv(statement), media_type="text/csv; charset=utf-8", headers=headers)
    return view.json(told(statement))


def told(statement: Statement) -> dict[str, Any]:
    """Give a statement as data, with its checksum."""
    plain: dict[str, Any] = msgspec.to_builtins(statement)
    return plain | {"checksum": statement.checksum}
