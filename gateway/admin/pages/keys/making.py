"""A new key. Its secret stands on the answer of this one form and nowhere else."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import read_optional_usd
from gateway.admin.pages.requests.detail import Looks
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import Conflict, InvalidRequest, NotFound, TooManyRequests, Unprocessable
from gateway.ledger.accounts import Accounts
from gateway.ledger.keys import Keys, NewKey

LIST_HINT = "One in a line. Empty is any."
FIELDS = {"account_id": "account", "budget_nanos": "budget", "expires_at": "expires"}
"""Where the stores' fields stand in the forms."""
REFUSED = (InvalidRequest, NotFound, Conflict, Unprocessable, TooManyRequests)


@page("/admin/keys/new", needs="billing", data=False)
async def ask_new(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Ask what a new key may do."""
    return await _ask(view, engine)


@action("/admin/keys/new", needs="billing")
async def make(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], looks: NamedDependency[Looks]
) -> Response[Any]:
    """Make it, and show its secret this once."""
    form = await view.form()
    try:
        account = form.get("account", "")
        if not (account.isascii() and account.isdigit() and len(account) < 19):
            raise InvalidRequest("Choose who pays.", param="account")
        new = NewKey(
            account_id=int(account),
            name=form.get("name", ""),
            budget_nanos=read_optional_usd(form.get("budget", ""), "budget"),
            expires_at=read_instant(form.get("expires", ""), "expires", view),
            models=read_lines(form.get("models", "")),
            addresses=read_lines(form.get("addresses", "")),
        )
        issued = await Keys(engine).create(new, by=view.actor)
    except REFUSED as error:
        return await _ask(view, engine, status=422, values=form, errors={field_of(error.param): error.message})
    payer = await Accounts(engine).show(issued.account_id)
    return view.render("key_made.html", issued=issued, account=payer, base=looks.addresses.base)


async def _ask(view: View, engine: AsyncEngine, **given: Any) -> Response[Any]:
    payers = [one for one in await Accounts(engine).list() if one.suspended_at is None]
    fields = [
        {
            "name": "account",
            "label": "Who pays",
            "choices": [(one.id, one.name) for one in payers],
            "value": view.query.get("account", ""),
        },
        {"name": "name", "label": "Name", "hint": "What it is for: “production”, “the mobile app”."},
        {
            "name": "budget",
            "label": "Budget in all, US dollars",
            "hint": "Empty is none: the account alone is the limit. Budgets by day and rates come after.",
        },
        *shared_fields({}),
    ]
    effects = [] if payers else ["There is no account yet: create one first."]
    return view.confirm(
        title="New key", act="/admin/keys/new", button="Make the key", effects=effects, fields=fields,
        back="/admin/keys", **given,
    )  # fmt: skip


def shared_fields(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Give the fields that a new key and an edited one share."""
    return [
        {"name": "expires", "label": "Expires", "value": values.get("expires", ""),
         "hint": "Such as 2027-01-31 or 2027-01-31 18:00, in the page's time zone. Empty is never."},
        {"name": "models", "label": "Models", "kind": "area", "value": values.get("models", ""),
         "hint": LIST_HINT + " * stands for any text."},
        {"name": "addresses", "label": "Addresses", "kind": "area", "value": values.get("addresses", ""),
         "hint": LIST_HINT + " An address, or a network such as 10.0.0.0/8."},
    ]  # fmt: skip


def read_lines(text: str) -> list[str] | None:
    """Read a list, one in a line or after a comma; None of nothing."""
    return [part.strip() for part in text.replace(",", "\n").splitlines() if part.strip()] or None


def read_instant(text: str, name: str, view: View) -> datetime | None:
    """Read an instant in the page's zone; None of nothing. Raises InvalidRequest."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=ZoneInfo(view.period.zone_name)) if at.tzinfo is None else at
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest("A date or an instant, such as 2027-01-31 18:00.", param=name) from None


def field_of(param: str | None) -> str:
    """Give the field of a form that an error is about."""
    return FIELDS.get(param or "", (param or "").partition("[")[0].partition(".")[0])
