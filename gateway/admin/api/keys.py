"""`/admin/api/keys`."""

from typing import Annotated

import msgspec
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter

from gateway.admin.api.accounts import After, Limit
from gateway.admin.api.bodies import Budget, CreateKey, EditKey, KeyList
from gateway.ledger.audit import Actor
from gateway.ledger.keys import KeyEdit, Keys, NewKey
from gateway.ledger.records import Issued, Key

KeyId = Annotated[int, PathParameter(ge=1, le=2**63 - 1)]
OfAccount = Annotated[
    int | None, QueryParameter(name="account", ge=1, le=2**63 - 1, description="Only of this account.")
]


class KeysController(Controller):
    """What callers present."""

    path = "/keys"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @post(summary="Make an API key; its secret is shown this once")
    async def create(
        self, data: JSONBody[CreateKey], keys: NamedDependency[Keys], by: NamedDependency[Actor]
    ) -> Issued:
        """Make a key for an account."""
        return await keys.create(
            NewKey(
                account_id=data.account_id,
                name=data.name,
                budget_nanos=data.budget_nanos,
                expires_at=data.expires_at,
                models=data.models,
                addresses=data.addresses,
            ),
            by=by,
        )

    @get(summary="All keys, by id; never their secrets")
    async def list_keys(
        self, keys: NamedDependency[Keys], account_id: OfAccount = None, after: After = 0, limit: Limit = 100
    ) -> KeyList:
        """List one page of keys."""
        page = await keys.list(account_id=account_id, after_id=after, limit=limit)
        return KeyList(keys=list(page), next_after=page[-1].id if len(page) == limit else None)

    @get("/{key_id:int}", summary="One key")
    async def show(self, key_id: KeyId, keys: NamedDependency[Keys]) -> Key:
        """Show one key."""
        return await keys.show(key_id)

    @post("/{key_id:int}/edit", status_code=200, summary="Change a key's name, budget, expiry, models or addresses")
    async def edit(
        self, key_id: KeyId, data: JSONBody[EditKey], keys: NamedDependency[Keys], by: NamedDependency[Actor]
    ) -> Key:
        """Change what is given, within a second in every gateway; null lifts a bound."""
        return await keys.edit(key_id, KeyEdit(**msgspec.structs.asdict(data)), by=by)

    @post("/{key_id:int}/revoke", status_code=200, summary="Stop a key for good")
    async def revoke(self, key_id: KeyId, keys: NamedDependency[Keys], by: NamedDependency[Actor]) -> Key:
        """Stop a key, within a second in every gateway."""
        return await keys.revoke(key_id, by=by)

    @post("/{key_id:int}/budget", status_code=200, summary="Change what a key may spend in all")
    async def set_budget(
        self, key_id: KeyId, data: JSONBody[Budget], keys: NamedDependency[Keys], by: NamedDependency[Actor]
    ) -> Key:
        """Change or lift a key's budget."""
        return await keys.set_budget(key_id, data.budget_nanos, by=by)
