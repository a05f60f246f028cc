"""Who may use the admin API: the bearers of the operators' keys, each as far as its role goes."""

from collections.abc import Mapping
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from gateway.admin.site.operator_keys import NAMES, OperatorKeys
from gateway.admin.site.roles import may
from gateway.errors import Forbidden, Unauthorized
from gateway.ledger.audit import Actor

ACTOR = "faregate_actor"
DOOR_HEADER = "x-faregate-door"
"""What `faregate` sends, so that the audit log tells it from other callers of this API."""
READS = frozenset({"GET", "HEAD"})


def admin_guard(operator_keys: Mapping[str, str]) -> Guard:
    """Make the guard that lets operators in, by the key of each role; an empty key is none.

    Reading takes a viewer; a change takes what its handler or controller says in `opt["needs"]`, else an owner.
    Keys are compared by their hashes, in constant time.
    """
    keys = OperatorKeys(operator_keys)

    def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        kind, _space, rest = connection.headers.get("authorization", "").partition(" ")
        role = keys.role_of(rest.strip()) if kind.lower() == "bearer" else None
        if role is None:
            raise Unauthorized(
                "The admin API takes the admin key, as 'Authorization: Bearer KEY'; API keys do not open it.",
                code="invalid_admin_key",
            )
        needs = "viewer" if connection.scope.get("method") in READS else handler.opt.get("needs", "owner")
        if not may(role, needs):
            raise Forbidden(f"This needs the role {needs}; yours is {role}.", code="role_needed")
        door = "cli" if connection.headers.get(DOOR_HEADER) == "cli" else "api"
        connection.scope["state"][ACTOR] = Actor(name=NAMES[role], role=role, door=door)  # type: ignore[arg-type]

    return guard


def actor_of(request: Request[Any, Any, State]) -> Actor:
    """Give who asks, as stores write them into the audit log."""
    actor: Actor = request.scope["state"][ACTOR]
    return actor
