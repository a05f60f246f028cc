"""Stopping a key for good: the page that asks says how much it is used, and wants its name."""

from datetime import timedelta
from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.keys.detail import label_of
from gateway.admin.pages.receipts import receipt
from gateway.admin.site.figures import ago, count, usd
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import Unprocessable
from gateway.ledger.accounts import Accounts
from gateway.ledger.keys import Keys
from gateway.reports.figures import Figures
from gateway.reports.ranges import Range
from gateway.reports.request_list import list_open
from gateway.reports.scope import Scope

MOST_OPEN = 1000


@page("/admin/keys/{key_id:int}/revoke", needs="billing", data=False)
async def ask_revoke(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Ask before a key stops."""
    return await _ask(view, engine, key_id)


@action("/admin/keys/{key_id:int}/revoke", needs="billing")
async def revoke(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Stop it, if its name was typed."""
    form = await view.form()
    name = label_of(await Keys(engine).show(key_id))
    if form.get("confirm_name") != name:
        errors = {"confirm_name": "This is not its name."}
        return await _ask(view, engine, key_id, status=422, values=form, errors=errors)
    await Keys(engine).revoke(key_id, by=view.actor)
    audit_id = await receipt(view, engine, "key", key_id)
    return view.redirect(f"/admin/keys/{key_id}", toast=f"{name} is revoked.", audit_id=audit_id)


async def _ask(view: View, engine: AsyncEngine, key_id: int, **given: Any) -> Response[Any]:
    key = await Keys(engine).show(key_id)
    if key.revoked_at is not None:
        raise Unprocessable("This key is revoked already.")
    now = view.period.now
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = await Figures(engine).totals(Range(day, day + timedelta(days=1)), Scope(key_id=key_id))
    still = await list_open(engine, key_id=key_id, limit=MOST_OPEN)
    payer = await Accounts(engine).show(key.account_id)
    used = f"Used {count(today.requests)} times today for {usd(today.charge_nanos)}, last {ago(key.last_used_at, now)}."
    effects = [
        used if key.last_used_at else "It was never used.",
        f"{count(len(still))} of its requests are open: they end as they would, and are charged."
        if still
        else "None of its requests is open.",
        f"Its calls are refused within a second, in every gateway. What it has spent stays with “{payer.name}”.",
        "This cannot be undone.",
    ]
    return view.confirm(
        title=f"Revoke {label_of(key)}",
        act=f"/admin/keys/{key_id}/revoke",
        button="Revoke it",
        danger=True,
        type_name=label_of(key),
        effects=effects,
        back=f"/admin/keys/{key_id}",
        **given,
    )
