"""A new account."""

from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.accounts.asking import REFUSED, done, errors_of
from gateway.admin.pages.amounts import read_optional_usd
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.ledger.accounts import Accounts, NewAccount


@page("/admin/accounts/new", needs="billing", data=False)
async def ask_new(view: NamedDependency[View]) -> Response[Any]:
    """Ask who pays."""
    return _ask(view)


@action("/admin/accounts/new", needs="billing")
async def make(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Create it."""
    form = await view.form()
    try:
        new = NewAccount(
            name=form.get("name", ""),
            kind="postpaid" if form.get("kind") == "postpaid" else "prepaid",
            balance_nanos=read_optional_usd(form.get("balance", ""), "balance") or 0,
            credit_limit_nanos=read_optional_usd(form.get("limit", ""), "limit") or 0,
        )
        account = await Accounts(engine).create(new, by=view.actor)
    except REFUSED as error:
        return _ask(view, status=422, values=form, errors=errors_of(error))
    return await done(view, engine, account.id, f"{account.name} is created.")


def _ask(view: View, **given: Any) -> Response[Any]:
    kinds = [("prepaid", "Prepaid: spends what was topped up"), ("postpaid", "Postpaid: goes below zero")]
    fields = [
        {"name": "name", "label": "Name", "required": True},
        {"name": "kind", "label": "Kind", "choices": kinds, "value": "prepaid"},
        {"name": "balance", "label": "Opening balance, US dollars", "value": "", "hint": "Booked as a top-up."},
        {"name": "limit", "label": "Credit limit, US dollars", "value": "", "hint": "Of a postpaid account."},
    ]
    return view.confirm(
        title="New account", act="/admin/accounts/new", button="Create it", fields=fields, back="/admin/accounts",
        **given,
    )  # fmt: skip
