"""`GET /v1/key`: what the calling key may do, and how its limits and those of its account stand."""

from typing import Any

from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency

from gateway.flow.authenticate import identify
from gateway.flow.way import Way
from gateway.http.native.requests import secret_of
from gateway.ledger.keys import Keys
from gateway.ledger.limits import LimitStore, Owner


class OwnKeyController(Controller):
    """The calling key."""

    path = "/v1/key"
    tags = ("Usage",)

    @get(summary="What this key may do, and how near its limits it is")
    async def show(
        self,
        request: Request[Any, Any, State],
        way: NamedDependency[Way],
        keys: NamedDependency[Keys],
        limits: NamedDependency[LimitStore],
    ) -> dict[str, Any]:
        """Show the key that calls; nothing of it that would let anyone use it."""
        caller = await identify(way.keyring, secret_of(request))
        key = await keys.show(caller.key_id)
        mine = await limits.show(Owner("key", caller.key_id))
        shared = await limits.show(Owner("account", caller.account_id))
        left = None if key.budget_nanos is None else max(key.budget_nanos - key.used_nanos, 0)
        return {
            "id": key.id,
            "name": key.name,
            "account": caller.account_name,
            "expires_at": key.expires_at,
            "models": key.models,
            "addresses": key.addresses,
            "used_nanos": key.used_nanos,
            "budget_nanos": key.budget_nanos,
            "left_nanos": left,
            "limits": {
                "key": {"budgets": mine.budgets, "rates": mine.rates},
                "account": {"budgets": shared.budgets, "rates": shared.rates},
            },
        }
