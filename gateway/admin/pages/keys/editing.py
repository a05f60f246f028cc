"""Changing what a key is called and may do, and its limits."""

from datetime import datetime
from typing import Any

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.keys.detail import label_of
from gateway.admin.pages.keys.making import REFUSED, field_of, read_instant, read_lines, shared_fields
from gateway.admin.pages.limit_form import limit_fields, read_limits
from gateway.admin.pages.receipts import receipt
from gateway.admin.site.figures import usd_exact, when
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.ledger.keys import KeyEdit, Keys
from gateway.ledger.limits import LimitStore, Owner


@page("/admin/keys/{key_id:int}/edit", needs="billing", data=False)
async def ask_edit(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Ask what is to be another."""
    return await _ask_edit(view, engine, key_id)


@action("/admin/keys/{key_id:int}/edit", needs="billing")
async def edit(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Change it."""
    form = await view.form()
    try:
        before = await Keys(engine).show(key_id)
        expires: datetime | msgspec.UnsetType | None = read_instant(form.get("expires", ""), "expires", view)
        if before.expires_at is not None and form.get("expires") == when(before.expires_at, view.period.zone):
            expires = msgspec.UNSET  # shown to the second, so it would be cut; and one in the past is refused
        change = KeyEdit(
            name=form.get("name", ""),
            models=read_lines(form.get("models", "")),
            addresses=read_lines(form.get("addresses", "")),
            expires_at=expires,
        )
        key = await Keys(engine).edit(key_id, change, by=view.actor)
    except REFUSED as error:
        return await _ask_edit(
            view, engine, key_id, status=422, values=form, errors={field_of(error.param): error.message}
        )
    audit_id = await receipt(view, engine, "key", key_id)
    return view.redirect(f"/admin/keys/{key_id}", toast=f"{label_of(key)} is changed.", audit_id=audit_id)


@page("/admin/keys/{key_id:int}/limits", needs="billing", data=False)
async def ask_limits(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Ask for its limits."""
    return await _ask_limits(view, engine, key_id)


@action("/admin/keys/{key_id:int}/limits", needs="billing")
async def change_limits(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Set and lift them."""
    form, store, owner = await view.form(), LimitStore(engine), Owner("key", key_id)
    try:
        changes, total_nanos = read_limits(form, await store.show(owner))
        await store.change(owner, changes, by=view.actor)
        key = await Keys(engine).set_budget(key_id, total_nanos, by=view.actor)
    except REFUSED as error:
        name = (error.param or "").split(".")[-1] if "." in (error.param or "") else field_of(error.param)
        return await _ask_limits(view, engine, key_id, status=422, values=form, errors={name: error.message})
    audit_id = await receipt(view, engine, "key", key_id)
    return view.redirect(f"/admin/keys/{key_id}", toast=f"The limits of {label_of(key)} are set.", audit_id=audit_id)


async def _ask_edit(view: View, engine: AsyncEngine, key_id: int, **given: Any) -> Response[Any]:
    key = await Keys(engine).show(key_id)
    now = {
        "expires": when(key.expires_at, view.period.zone) if key.expires_at else "",
        "models": "\n".join(key.models or []),
        "addresses": "\n".join(key.addresses or []),
    }
    return view.confirm(
        title=f"Edit {label_of(key)}",
        act=f"/admin/keys/{key_id}/edit",
        button="Save",
        effects=["Every gateway knows it within a second. What is open ends as it began."],
        fields=[{"name": "name", "label": "Name", "value": key.name}, *shared_fields(now)],
        back=f"/admin/keys/{key_id}",
        **given,
    )


async def _ask_limits(view: View, engine: AsyncEngine, key_id: int, **given: Any) -> Response[Any]:
    key = await Keys(engine).show(key_id)
    limits = await LimitStore(engine).show(Owner("key", key_id))
    effects = [
        f"It has used {usd_exact(key.used_nanos)} in all, holds of open requests among it.",
        "An empty field is no limit. Calls beyond a limit are refused with 402 or 429, which say when it resets.",
    ]
    return view.confirm(
        title=f"Limits of {label_of(key)}",
        act=f"/admin/keys/{key_id}/limits",
        button="Set the limits",
        effects=effects,
        fields=limit_fields(limits, key.budget_nanos),
        back=f"/admin/keys/{key_id}",
        **given,
    )
