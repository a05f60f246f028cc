"""What all forms of an account share: each is asked for by a page and done by an action of the same address."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

from litestar import Response
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.receipts import receipt
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import Conflict, InvalidRequest, Unprocessable
from gateway.ledger.audit import Actor

REFUSED = (InvalidRequest, Conflict, Unprocessable)
FIELDS = {"amount_nanos": "amount", "credit_limit_nanos": "limit", "balance_nanos": "balance", "alert_url": "url"}
"""Where the stores' fields stand in the forms."""

Values = Mapping[str, str]
"""What was typed into a form; nothing of one that is shown for the first time."""
Ask = Callable[[AsyncEngine, int, Values], Awaitable[dict[str, Any]]]
"""Gives of an account what the form says: title, button, effects, fields."""
Do = Callable[[AsyncEngine, int, Values, Actor], Awaitable[str]]
"""Does it, and gives the words of the toast. May raise one of REFUSED."""


def account_form(verb: str, ask: Ask, do: Do) -> tuple[HTTPRouteHandler, HTTPRouteHandler]:
    """Make the page and the action of a form."""
    path = f"/admin/accounts/{{account_id:int}}/{verb}"

    async def asked(view: View, engine: AsyncEngine, account_id: int, values: Values, **given: Any) -> Response[Any]:
        home = f"/admin/accounts/{account_id}"
        form = await ask(engine, account_id, values)
        return view.confirm(act=f"{home}/{verb}", back=home, values=values, **form, **given)

    @page(path, needs="billing", data=False)
    async def show(
        view: NamedDependency[View], engine: NamedDependency[AsyncEngine], account_id: FromPath[int]
    ) -> Response[Any]:
        return await asked(view, engine, account_id, {})

    @action(path, needs="billing")
    async def act(
        view: NamedDependency[View], engine: NamedDependency[AsyncEngine], account_id: FromPath[int]
    ) -> Response[Any]:
        form = await view.form()
        try:
            said = await do(engine, account_id, form, view.actor)
        except REFUSED as error:
            return await asked(view, engine, account_id, form, status=422, errors=errors_of(error))
        return await done(view, engine, account_id, said)

    return show, act


def errors_of(error: InvalidRequest | Conflict | Unprocessable) -> dict[str, str]:
    """Give the field of a form that an error is about, with its words."""
    param = error.param or ""
    return {FIELDS.get(param, param.rpartition(".")[2]): error.message}


def number_field(values: Values) -> dict[str, str]:
    """Give the hidden field that lets a form that is sent twice be booked once."""
    number = values.get("transaction_id") or str(uuid4())
    return {"name": "transaction_id", "label": "", "kind": "hidden", "value": number}


def read_number(text: str) -> UUID:
    """Read that field. Raises InvalidRequest."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidRequest("Load this form again.", param="transaction_id") from None


async def done(view: View, engine: AsyncEngine, account_id: int, said: str) -> Response[Any]:
    """Lead back to the account, with a line that links to the audit entry."""
    audit_id = await receipt(view, engine, "account", account_id)
    return view.redirect(f"/admin/accounts/{account_id}", toast=said, audit_id=audit_id)
