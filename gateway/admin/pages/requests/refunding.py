"""Giving a charge back: the page that asks, with what it comes to, and the change."""

from typing import Any
from uuid import UUID, uuid4

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import read_usd
from gateway.admin.pages.receipts import receipt
from gateway.admin.site.figures import usd_exact
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import FaregateError, InvalidRequest, Unprocessable
from gateway.ledger.accounts import Accounts
from gateway.ledger.refunds import NewRefund, Refunds
from gateway.money import usd_text

_FIELDS = {"amount_nanos": "amount", "reason": "reason", "transaction_id": ""}


@page("/admin/requests/{request_id:str}/refund", needs="billing", data=False)
async def ask_refund(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], request_id: FromPath[str]
) -> Response[Any]:
    """Ask how much is given back, and why."""
    return await _ask(view, engine, request_id)


@action("/admin/requests/{request_id:str}/refund", needs="billing")
async def refund(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], request_id: FromPath[str]
) -> Response[Any]:
    """Give it back."""
    form = await view.form()
    try:
        wanted = NewRefund(
            request_id=request_id,
            amount_nanos=read_usd(form.get("amount", ""), "amount"),
            reason=form.get("reason", ""),
            transaction_id=_number(form.get("transaction_id", "")),
        )
        made = await Refunds(engine).give(wanted, by=view.actor)
    except (InvalidRequest, Unprocessable) as error:
        name = _FIELDS.get(error.param or "", error.param or "")
        return await _ask(view, engine, request_id, status=422, values=form, errors={name: error.message})
    return view.redirect(
        f"/admin/requests/{request_id}",
        toast=f"{usd_exact(made.amount_nanos)} is given back.",
        audit_id=await receipt(view, engine, "request", request_id),
    )


def _number(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidRequest("Load this form again.", param="transaction_id") from None


async def _ask(view: View, engine: AsyncEngine, request_id: str, **given: Any) -> Response[Any]:
    told = await Refunds(engine).of_request(request_id)
    payer = await Accounts(engine).show(told.account_id)
    back = f"/admin/requests/{request_id}"
    if told.left_nanos <= 0:
        raise _nothing_left(told.charge_nanos)
    given_back = f"; {usd_exact(told.refunded_nanos)} of it was given back already" if told.refunded_nanos else ""
    after = payer.available_nanos + told.left_nanos
    effects = [
        f"The request was charged {usd_exact(told.charge_nanos)}{given_back}.",
        f"At most {usd_exact(told.left_nanos)} can be given back. With all of it, “{payer.name}” has "
        f"{usd_exact(after)} available in place of {usd_exact(payer.available_nanos)}.",
        "It is a ledger transaction of its own: the charge and the usage row stay as they are.",
    ]
    number = given.get("values", {}).get("transaction_id") or str(uuid4())
    fields = [
        {"name": "amount", "label": "Amount in US dollars", "value": usd_text(told.left_nanos), "required": True},
        {
            "name": "reason",
            "label": "Reason",
            "kind": "area",
            "required": True,
            "hint": "Stands in ledger and audit log.",
        },
        {"name": "transaction_id", "label": "", "kind": "hidden", "value": number},
    ]
    return view.confirm(
        title="Refund a request",
        act=f"{back}/refund",
        button="Give it back",
        effects=effects,
        fields=fields,
        back=back,
        **given,
    )


def _nothing_left(charge_nanos: int) -> FaregateError:
    words = "all of its charge was given back already" if charge_nanos else "it was charged nothing"
    return Unprocessable(f"There is nothing to give back: {words}.", code="refund_above_charge")
