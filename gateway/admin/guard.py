"""Who may use the admin API: the bearer of the admin key."""

import hmac
from hashlib import sha256
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from gateway.errors import Unauthorized


def admin_guard(admin_key: str) -> Guard:
    """Make the guard that lets the admin key in. The keys are compared by their hashes, in constant time."""
    wanted = sha256(admin_key.encode()).digest()

    def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        kind, _space, rest = connection.headers.get("authorization", "").partition(" ")
        given = sha256(rest.strip().encode("utf-8", "surrogatepass")).digest()
        if not hmac.compare_digest(given, wanted) or kind.lower() != "bearer":
            raise Unauthorized(
                "The admin API takes the admin key, as 'Authorization: Bearer KEY'; API keys do not open it.",
                code="invalid_admin_key",
            )

    return guard
