"""Price lists: prices for some accounts only."""

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.catalog.names import LIST_NAME
from gateway.catalog.store import lock_catalog, raise_revision
from gateway.catalog.versions import versions_in_force
from gateway.db.accounts import account
from gateway.db.catalog import price_list
from gateway.errors import Conflict, InvalidRequest, NotFound
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.prices.records import PriceList
from gateway.ledger.transaction import transaction


class PriceLists:
    """Makes, renames and removes price lists. What they say is changed as every price is, with `PriceStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def list(self) -> list[PriceList]:
        """List all of them by name."""
        async with transaction(self._engine) as connection:
            return await _shown(connection)

    async def show(self, name: str) -> PriceList:
        """Show one. Raises NotFound."""
        async with transaction(self._engine) as connection:
            return await _show(connection, name)

    async def create(self, name: str, actor: Actor) -> PriceList:
        """Make an empty list: whoever pays by it pays list prices until it says otherwise.

        Raises InvalidRequest, or Conflict where the name is taken.
        """
        _check(name)
        async with transaction(self._engine) as connection:
            await lock_catalog(connection)
            await _free(connection, name)
            await connection.execute(insert(price_list).values(name=name))
            return await _changed(connection, actor, "create", name, (None, name))

    async def rename(self, name: str, new: str, actor: Actor) -> PriceList:
        """Give a list another name. Raises NotFound, InvalidRequest, or Conflict where the name is taken."""
        _check(new)
        async with transaction(self._engine) as connection:
            await lock_catalog(connection)
            await _show(connection, name)
            if new != name:
                await _free(connection, new)
            await connection.execute(update(price_list).where(price_list.c.name == name).values(name=new))
            return await _changed(connection, actor, "rename", new, (name, new))

    async def remove(self, name: str, actor: Actor) -> PriceList:
        """Remove a list that was never used. Raises NotFound, or Conflict for one with a history or with accounts."""
        async with transaction(self._engine) as connection:
            await lock_catalog(connection)
            found = await _show(connection, name)
            try:
                async with connection.begin_nested():
                    await connection.execute(delete(price_list).where(price_list.c.id == found.id))
            except IntegrityError:
                raise Conflict(
                    f"{found.accounts} accounts pay by this list, and charges may refer to its prices: "
                    "publish no rows for its models and move its accounts instead.",
                    code="price_list_in_use",
                    param="name",
                ) from None
            await _audit(connection, actor, "remove", name, (name, None))
            return found


def _check(name: str) -> None:
    if not LIST_NAME.fits(name):
        raise InvalidRequest(f"A list has a name of at most {LIST_NAME.most} {LIST_NAME.words}.", param="name")


async def _free(connection: AsyncConnection, name: str) -> None:
    taken = await connection.execute(select(price_list.c.id).where(price_list.c.name == name))
    if taken.one_or_none() is not None:
        raise Conflict("There is a price list of this name; choose another.", code="name_taken", param="name")


async def _shown(connection: AsyncConnection) -> list[PriceList]:
    versions = await versions_in_force(connection)
    paying = {
        row.price_list_id: row.accounts
        for row in await connection.execute(
            select(account.c.price_list_id, func.count().label("accounts"))
            .where(account.c.price_list_id.is_not(None))
            .group_by(account.c.price_list_id)
        )
    }
    return [
        PriceList(
            id=row.id,
            name=row.name,
            created_at=row.created_at,
            models=sum(1 for (of, _), one in versions.items() if of == row.id and one.sold.rows),
            accounts=paying.get(row.id, 0),
        )
        for row in await connection.execute(select(price_list).order_by(price_list.c.name))
    ]


async def _show(connection: AsyncConnection, name: str) -> PriceList:
    for each in await _shown(connection):
        if each.name == name:
            return each
    raise NotFound("There is no such price list.", code="price_list_not_found", param="name")


async def _changed(
    connection: AsyncConnection, actor: Actor, verb: str, name: str, change: tuple[str | None, str | None]
) -> PriceList:
    await _audit(connection, actor, verb, name, change)
    return await _show(connection, name)


async def _audit(
    connection: AsyncConnection, actor: Actor, verb: str, name: str, change: tuple[str | None, str | None]
) -> None:
    action = Action(name=f"price_list.{verb}", object_kind="price_list", object_id=name, changes={"name": change})
    await write_audit(connection, actor, action)
    await raise_revision(connection)
