"""The site, put together: its routes, their guard, their headers, and what handlers are given."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar import Response, Router, route
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import Redirect
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.assets import Assets
from gateway.admin.site.cookies import AnyRequest, Signer
from gateway.admin.site.failures import failure_handlers
from gateway.admin.site.gate import VISITOR, gate
from gateway.admin.site.headers import guarded_headers
from gateway.admin.site.jump import jump_admin, jump_usage
from gateway.admin.site.oidc.members import OidcConfig
from gateway.admin.site.operator_keys import OperatorKeys
from gateway.admin.site.page import page
from gateway.admin.site.sessions import WebSessions
from gateway.admin.site.sign_in import SIGN_IN, SignInDesk
from gateway.admin.site.templates import Templates
from gateway.admin.site.throttle import Shared, Throttle
from gateway.admin.site.view import View
from gateway.errors import NotFound
from gateway.ledger.keyring import Keyring


class SiteParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the site is made of."""

    engine: AsyncEngine
    keyring: Keyring
    operator_keys: Mapping[str, str]
    """The key of each role; an empty one is none."""
    secret: str
    """What toasts and forms are signed with: the same in all gateways of a system."""
    base_url: str
    oidc: OidcConfig | None = None
    tries: Shared | None = None
    """Who counts tries to sign in for all gateways; None leaves it to this process."""
    template_folders: Sequence[Path] = ()
    """Where templates lie beside the site's own."""


@route(
    ["/admin/{rest:path}", "/usage/{rest:path}"],
    http_method=["GET", "POST"],
    opt={"needs": "anyone"},
    include_in_schema=False,
    status_code=404,
)
async def nowhere(rest: FromPath[str]) -> None:
    """Answer where no page is."""
    raise NotFound(f"There is no page at this address: {rest[:100]}")


@page("/", needs="anyone", data=False)
async def front_page() -> Response[Any]:
    """Lead whoever types the bare address to the dashboard."""
    return Redirect("/admin", status_code=303)


def site_router(parts: SiteParts, pages: Sequence[HTTPRouteHandler], given: Mapping[str, Any]) -> Router:
    """Make the routes of the site; `given` has what pages' handlers take by name."""
    signer, assets = Signer(parts.secret), Assets()
    templates = Templates(assets, *parts.template_folders)
    sessions = WebSessions(parts.engine, parts.keyring)
    base = urlsplit(parts.base_url)
    keys, has_oidc = OperatorKeys(parts.operator_keys), parts.oidc is not None
    desk = SignInDesk(sessions, keys, parts.keyring, signer, throttle=Throttle(parts.tries), has_oidc=has_oidc)

    def view_of(request: AnyRequest) -> View:
        visitor = request.scope["state"].get(VISITOR)
        return View(request, visitor, templates, signer, parts.base_url.rstrip("/"))

    oidc: Sequence[HTTPRouteHandler] = ()
    if parts.oidc is not None:
        # Here, because what reads signed tokens takes 9 MB that a system without a provider is spared.
        from gateway.admin.site.oidc.provider import Provider
        from gateway.admin.site.oidc.routes import OIDC

        oidc, given = OIDC, {**given, "provider": Provider(parts.oidc)}
    named = {"engine": parts.engine, "desk": desk, **given}
    dependencies = {name: Provide(_giving(part), sync_to_thread=False) for name, part in named.items()}
    dependencies["view"] = Provide(view_of, sync_to_thread=False)
    return Router(
        path="/",
        route_handlers=[*pages, *SIGN_IN, *oidc, jump_admin, jump_usage, front_page, nowhere, assets.handler()],
        guards=[gate(sessions, f"{base.scheme}://{base.netloc}")],
        middleware=[guarded_headers],
        exception_handlers=failure_handlers(view_of),
        dependencies=dependencies,
        include_in_schema=False,
    )


def _giving(part: Any) -> Callable[[], Any]:
    def give() -> Any:
        return part

    return give
