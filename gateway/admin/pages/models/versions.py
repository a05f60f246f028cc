"""Calling off a scheduled version, and reinstating an old one as a new one."""

from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.models.listing import price_words
from gateway.admin.site.figures import when
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.ledger.prices.records import PriceRecord
from gateway.ledger.prices.store import PriceStore

_REASON = {"name": "reason", "label": "Reason", "hint": "Stands in the history and the audit log."}


def _back(price: PriceRecord) -> str:
    return f"/admin/models/{price.model}{f'?list={price.price_list}' if price.price_list else ''}"


@page("/admin/prices/{version_id:int}/cancel", needs="billing", data=False)
async def ask_cancel(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], version_id: FromPath[int]
) -> Response[Any]:
    """Say what calling a version off does."""
    price = await PriceStore(engine).show(version_id)
    return view.confirm(
        title=f"Call off version {version_id}",
        act=f"/admin/prices/{version_id}/cancel",
        button="Call it off",
        danger=True,
        effects=[
            f"{price.model} would have cost {price_words(price) or 'nothing: it was not for sale'} "
            f"from {when(price.valid_from)} UTC on.",
            "What is in force now stays in force.",
        ],
        fields=[_REASON],
        back=_back(price),
    )


@action("/admin/prices/{version_id:int}/cancel", needs="billing")
async def cancel(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], version_id: FromPath[int]
) -> Response[Any]:
    """Call a scheduled version off."""
    reason = (await view.form()).get("reason", "")
    done = await PriceStore(engine).cancel(version_id, view.actor, reason=reason)
    return view.redirect(_back(done.price), toast=f"Version {version_id} is called off.", audit_id=done.audit_id)


@page("/admin/prices/{version_id:int}/reinstate", needs="billing", data=False)
async def ask_reinstate(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], version_id: FromPath[int]
) -> Response[Any]:
    """Say what reinstating a version does."""
    price = await PriceStore(engine).show(version_id)
    base = view.query.get("base", "")
    return view.confirm(
        title=f"Reinstate version {version_id}",
        act=f"/admin/prices/{version_id}/reinstate",
        button="Publish it again",
        effects=[
            f"From now on {price.model} costs {price_words(price) or 'nothing: it is not for sale'}.",
            "This makes a new version; the old one stays in the history as it is.",
        ],
        fields=[{"name": "base", "kind": "hidden", "value": base if base.isdecimal() else ""}, _REASON],
        back=_back(price),
    )


@action("/admin/prices/{version_id:int}/reinstate", needs="billing")
async def reinstate(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], version_id: FromPath[int]
) -> Response[Any]:
    """Publish an old version as a new one."""
    form = await view.form()
    base = int(form["base"]) if form.get("base", "").isdecimal() else None
    done = await PriceStore(engine).reinstate(version_id, view.actor, base=base, reason=form.get("reason", ""))
    said = f"Version {done.price.id} says again what version {version_id} said."
    return view.redirect(_back(done.price), toast=said, audit_id=done.audit_id)
