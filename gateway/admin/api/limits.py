"""`/admin/api/accounts/{id}/limits` and `/admin/api/keys/{id}/limits`."""

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from gateway.admin.api.accounts import AccountId
from gateway.admin.api.keys import KeyId
from gateway.ledger.audit import Actor
from gateway.ledger.limit_records import LimitChanges, Limits
from gateway.ledger.limits import LimitStore, Owner


class LimitsController(Controller):
    """What accounts and keys may spend in a period, and ask for in a minute or at once."""

    path = "/"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @get("/accounts/{account_id:int}/limits", summary="The limits of an account, as they stand")
    async def show_account(self, account_id: AccountId, limits: NamedDependency[LimitStore]) -> Limits:
        """Show the limits that all keys of an account share."""
        return await limits.show(Owner("account", account_id))

    @post("/accounts/{account_id:int}/limits", status_code=200, summary="Set or lift limits of an account")
    async def change_account(
        self,
        account_id: AccountId,
        data: JSONBody[LimitChanges],
        limits: NamedDependency[LimitStore],
        by: NamedDependency[Actor],
    ) -> Limits:
        """Set the limits that are named, and lift those that are null; what is not named stays."""
        return await limits.change(Owner("account", account_id), data, by)

    @get("/keys/{key_id:int}/limits", summary="The limits of a key, as they stand")
    async def show_key(self, key_id: KeyId, limits: NamedDependency[LimitStore]) -> Limits:
        """Show the limits of one key; those of its account count beside them."""
        return await limits.show(Owner("key", key_id))

    @post("/keys/{key_id:int}/limits", status_code=200, summary="Set or lift limits of a key")
    async def change_key(
        self,
        key_id: KeyId,
        data: JSONBody[LimitChanges],
        limits: NamedDependency[LimitStore],
        by: NamedDependency[Actor],
    ) -> Limits:
        """Set the limits that are named, and lift those that are null; what is not named stays."""
        return await limits.change(Owner("key", key_id), data, by)
