"""Whose prices an account pays and what is off them: a draft beside what its requests would cost, then set."""

from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect
from sqlalchemy import func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.accounts.asking import REFUSED, done, errors_of
from gateway.admin.pages.accounts.pricing_draft import Pricing, read_pricing
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.catalog.snapshot import SnapshotSource
from gateway.db.accounts import account
from gateway.db.reading import reading
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.ledger.accounts import Accounts
from gateway.pricing.backtest import DAYS
from gateway.reports.backtest.jobs import Backtests

MOST_REASON = 500
MOST_NAMED = 10


@page("/admin/accounts/{account_id:int}/pricing", data=False)
async def show_pricing(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    account_id: FromPath[int],
) -> Response[Any]:
    """Show what an account pays, and a draft of other terms."""
    return _page(view, await read_pricing(engine, catalog, account_id, view.query))


@page("/admin/accounts/{account_id:int}/pricing/outcome", data=False)
async def show_pricing_outcome(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    account_id: FromPath[int],
) -> Response[Any]:
    """Show what a draft comes to: the part of the page that changes as one types."""
    pricing = await read_pricing(engine, catalog, account_id, view.query)
    return view.render("account_pricing_outcome.html", pricing=pricing, days=DAYS, errors=pricing.errors)


@action("/admin/accounts/{account_id:int}/pricing", needs="billing")
async def set_pricing(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    account_id: FromPath[int],
) -> Response[Any]:
    """Set both: they hold for what is admitted from now on."""
    form = await view.form()
    pricing = await read_pricing(engine, catalog, account_id, form)
    errors = dict(pricing.errors)
    reason = form.get("reason", "")[:MOST_REASON]
    if not errors and form.get("base") != pricing.base:
        errors["base"] = f"It was changed meanwhile, to {pricing.words_now}: look at your draft against that."
    if not errors and not reason and pricing.fresh is None:
        errors["reason"] = "Say why, or run a backtest of this discount first."
    if errors:
        return _page(view, pricing, status=409 if "base" in errors else 422, errors=errors)
    try:
        paying = await Accounts(engine).set_pricing(
            account_id,
            list_name=pricing.list_name or None,
            discount_ppm=pricing.discount_ppm,
            by=view.actor,
            reason=reason or f"after backtest {pricing.fresh.id if pricing.fresh else ''}",
        )
    except REFUSED as error:
        return _page(view, pricing, status=422, errors=errors_of(error))
    return await done(view, engine, account_id, f"{paying.name} pays {pricing.words} from now on.")


@action("/admin/accounts/{account_id:int}/pricing/backtest", needs="billing")
async def backtest_discount(
    view: NamedDependency[View],
    engine: NamedDependency[AsyncEngine],
    catalog: NamedDependency[SnapshotSource],
    account_id: FromPath[int],
) -> Response[Any]:
    """Ask what the discount would have taken off the usage of the last days."""
    form = await view.form()
    pricing = await read_pricing(engine, catalog, account_id, form)
    if pricing.errors:
        return _page(view, pricing, status=422, errors=pricing.errors)
    if not form.get("days", "").isdecimal():
        raise InvalidRequest("'days' is a whole number.", param="days")
    made = await Backtests(engine).begin(pricing.asked, int(form["days"][:4]), view.actor.name)
    return view.redirect(f"/admin/backtests/{made.id}")


@page("/admin/prices/terms", data=False)
async def find_account(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Lead to the terms of the account that somebody names, with the list that it is to have."""
    text = view.query.get("account", "").strip()[:200]
    found = await _accounts_named(engine, text) if text else []
    if not found:
        raise NotFound(f"There is no account named or numbered {text!r}.", param="account")
    if len(found) > 1:
        names = ", ".join(f"{name} ({number})" for number, name in found)
        raise Conflict(f"More than one account is meant by {text!r}: {names}. Give its number.", param="account")
    wanted = f"?{urlencode({'list': view.query['list']})}" if "list" in view.query else ""
    return Redirect(f"/admin/accounts/{found[0][0]}/pricing{wanted}", status_code=303)


async def _accounts_named(engine: AsyncEngine, text: str) -> list[tuple[int, str]]:
    """Find the account of a name or a number, else some whose names hold the text."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    exact = or_(func.lower(account.c.name) == text.lower(), account.c.id == number)
    async with reading(engine) as connection:
        for matches in (exact, account.c.name.icontains(text, autoescape=True)):
            wanted = select(account.c.id, account.c.name).where(matches).order_by(account.c.name).limit(MOST_NAMED)
            found = [(row.id, row.name) for row in await connection.execute(wanted)]
            if found:
                return found
    return []


def _page(view: View, pricing: Pricing, *, status: int = 200, errors: dict[str, str] | None = None) -> Response[Any]:
    return view.render(
        "account_pricing.html",
        status=status,
        pricing=msgspec.structs.replace(pricing, errors=errors) if errors else pricing,
        errors=errors or pricing.errors,
        days=DAYS,
    )


PRICING = (show_pricing, show_pricing_outcome, set_pricing, backtest_discount, find_account)
