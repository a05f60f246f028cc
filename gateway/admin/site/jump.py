"""Where `/` leads: any id or how it begins, a key, an account or a model by its name, a page, else a search."""

import re
from typing import Any
from urllib.parse import quote

from litestar import Response
from litestar.di import NamedDependency
from litestar.response import Redirect
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.nav import ADMIN_PLACES, OWNER_PLACES, Place
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.reports.places import find_place

SEARCH = "/admin/models?q="
_IDS = (
    (re.compile(r"req_[0-9a-f]{32}"), "/admin/requests/{}", "/usage/requests/{}"),
    (re.compile(r"req_[0-9a-zA-Z-]{1,64}"), "/admin/requests?id={}", "/usage/requests/{}"),
    (re.compile(r"evt_[0-9a-zA-Z-]{8,64}"), "/admin/webhooks?event={}", ""),
    (re.compile(r"fg_live_\S{1,64}"), "/admin/keys?q={}", ""),
)


def target_of(text: str, places: tuple[Place, ...], *, owner: bool) -> str:
    """Say where a text leads."""
    wanted = text.strip()[:200]
    for pattern, for_operator, for_owner in _IDS:
        path = for_owner if owner else for_operator
        if path and pattern.fullmatch(wanted):
            shown = wanted[:12] if wanted.startswith("fg_live_") else wanted
            return path.format(quote(shown, safe=""))
    for place in places:
        if wanted and place.title.lower().startswith(wanted.lower()):
            return place.path
    return places[0].path if owner else f"{SEARCH}{quote(wanted, safe='')}"


@page("/admin/jump", needs="viewer", data=False)
async def jump_admin(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Lead an operator on. No more of a key than its beginning goes into an address."""
    text = view.query.get("to", "") or view.query.get("id", "")
    target = target_of(text, ADMIN_PLACES, owner=False)
    if target.startswith(SEARCH):
        target = await find_place(engine, text) or target
    return Redirect(target, status_code=303)


@page("/usage/jump", needs="key", data=False)
async def jump_usage(view: NamedDependency[View]) -> Response[Any]:
    """Lead a key's owner on."""
    return Redirect(target_of(view.query.get("to", ""), OWNER_PLACES, owner=True), status_code=303)
