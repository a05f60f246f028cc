"""Who gets in: finds who asks, and refuses what they may not do, before a page's handler runs."""

import asyncio
from typing import Any, cast

from litestar.connection import ASGIConnection
from litestar.exceptions import ImproperlyConfiguredException
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from gateway.admin.site.cookies import SESSION, AnyRequest
from gateway.admin.site.csrf import SAFE, check_origin, check_token
from gateway.admin.site.roles import Need
from gateway.admin.site.sessions import WebSessions
from gateway.admin.site.visitor import Kind, Visitor
from gateway.errors import Forbidden, Unavailable

ANSWER_S = 5.0
"""How long a page waits for the database to say who asks: a paused one says nothing, and refuses nothing."""
VISITOR = "faregate_visitor"
MOST_TOKEN = 256


class SignInNeeded(Exception):
    """Nobody is signed in, and the page needs it."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.kind = kind


def kind_of(path: str) -> Kind:
    """Say whose pages an address belongs to."""
    return "owner" if path == "/usage" or path.startswith(("/usage/", "/usage.")) else "operator"


def gate(sessions: WebSessions, public_origin: str) -> Guard:
    """Make the guard of every route of the site."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        request = cast(AnyRequest, connection)
        needs: Need | None = handler.opt.get("needs")
        if needs is None:
            raise ImproperlyConfiguredException(f"{handler} does not say what it needs of who asks")
        changes = request.method not in SAFE
        if changes:
            check_origin(request, public_origin)
        kind = kind_of(request.url.path)
        token = request.cookies.get(SESSION[kind], "")
        visitor = await _found(sessions, kind, token) if 0 < len(token) <= MOST_TOKEN else None
        request.scope["state"][VISITOR] = visitor
        if needs == "anyone":
            return
        if visitor is None:
            raise SignInNeeded(kind)
        if changes:
            await check_token(request, visitor.csrf)
        if not visitor.may(needs):
            raise Forbidden(visitor.why_not(needs), code="role_needed")

    return guard


async def _found(sessions: WebSessions, kind: Kind, token: str) -> Visitor | None:
    """Find who asks. Raises Unavailable while the database is away, or says nothing."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await sessions.find(kind, token)
    except TimeoutError:
        raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from None
