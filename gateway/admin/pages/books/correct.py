"""Post a correction: a form of two lines, a page that says what it does, and the booking."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import read_usd
from gateway.admin.pages.receipts import receipt
from gateway.admin.site.figures import usd_exact
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import FaregateError, InvalidRequest, Unavailable
from gateway.ledger.corrections import Corrections, NewCorrection
from gateway.ledger.records import Line

HOME = "/admin/books"
FIELDS = ("first_side", "first_usd", "second_side", "second_usd", "reason")


@page("/admin/books/correct", needs="billing", data=False)
async def ask_correct(view: NamedDependency[View]) -> Response[Any]:
    """Show the form; its fields may stand in the address."""
    return view.render("books_correct.html", values=_given(view.query), errors={})


@page("/admin/books/correct/review", needs="billing", data=False)
async def review_correct(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Say what the correction does, in figures, before it is booked."""
    values = _given(view.query)
    try:
        new = _read(values)
        effects = await Corrections(engine).effects(new)
    except Unavailable:
        raise
    except FaregateError as error:
        return _again(view, values, error)
    told = [
        f"{line.side} {'gets' if line.amount_nanos > 0 else 'gives'} {usd_exact(abs(line.amount_nanos))}."
        for line in new.lines
    ]
    told += [
        f"{one.name} has {usd_exact(one.available_before)} available, and then {usd_exact(one.available_after)}."
        for one in effects
    ]
    told += [f"Reason: {new.reason}", "It stands in the ledger for good; another correction can book it back."]
    kept = {**values, "transaction_id": str(uuid4())}
    return view.confirm(
        title="Book this correction",
        act=f"{HOME}/correct",
        button="Book",
        effects=told,
        fields=[{"name": name, "kind": "hidden", "value": value} for name, value in kept.items()],
        back=HOME,
    )


@action("/admin/books/correct", needs="billing")
async def correct(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Book a correction, once for the page that asked."""
    form = await view.form()
    values = _given(form)
    try:
        number = UUID(form["transaction_id"]) if form.get("transaction_id") else uuid4()
        made = await Corrections(engine).post(_read(values, number), view.actor)
    except ValueError:
        raise InvalidRequest("'transaction_id' is a UUID.", param="transaction_id") from None
    except Unavailable:
        raise
    except FaregateError as error:
        return _again(view, values, error)
    audit_id = await receipt(view, engine, "ledger", made.id)
    return view.redirect(HOME, toast="The correction is booked.", audit_id=audit_id)


def _given(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields.get(name, "") for name in FIELDS}


def _read(values: Mapping[str, str], number: UUID | None = None) -> NewCorrection:
    """Read the form. Raises InvalidRequest naming the field."""
    first, second = (
        Line(
            side=values[f"{which}_side"].replace(" ", "").lower(),
            amount_nanos=read_usd(values[f"{which}_usd"], f"{which}_usd", signed=True),
        )
        for which in ("first", "second")
    )
    if not values["reason"].isprintable() or len(values["reason"]) > 1000:
        raise InvalidRequest("A reason is a line of at most 1,000 characters.", param="reason")
    return NewCorrection(lines=(first, second), reason=values["reason"], transaction_id=number)


def _again(view: View, values: Mapping[str, str], error: FaregateError) -> Response[Any]:
    """Draw the form once more, with what was wrong at its field."""
    places = {"side": "second_side", "amount_nanos": "second_usd"}
    place = places.get(error.param or "", error.param or "first_side")
    errors = {place if place in FIELDS else "first_side": error.message}
    return view.render("books_correct.html", status=error.status, values=values, errors=errors)


CORRECT_PAGES = (ask_correct, review_correct, correct)
