"""Who pays what for a model: everybody, those with a price list, and those with a discount off everything."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.models.editing import Editing
from gateway.admin.pages.models.listing import price_words
from gateway.admin.site.figures import percent
from gateway.db.accounts import account
from gateway.db.reading import reading
from gateway.ledger.prices.records import PriceRecord
from gateway.ledger.prices.store import PriceStore


class ListScope(msgspec.Struct, frozen=True, kw_only=True):
    """A price list, and what the model costs in it."""

    name: str
    """Empty for the list price."""
    accounts: int
    price: str
    """In words; empty where the list says nothing of this model."""
    scheduled: PriceRecord | None


class Scopes(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody first, then the lists by name; and how many have something off."""

    lists: Sequence[ListScope]
    discounts: str


async def scopes_of(engine: AsyncEngine, editing: Editing) -> Scopes:
    """Read who pays what for a model."""
    counted = select(
        func.count().label("all"),
        func.count().filter(account.c.price_list_id.is_(None)).label("listed"),
        func.count().filter(account.c.discount_ppm > 0).label("discounted"),
        func.min(account.c.discount_ppm).filter(account.c.discount_ppm > 0).label("least"),
        func.max(account.c.discount_ppm).label("most"),
    )
    async with reading(engine) as connection:
        row = (await connection.execute(counted)).one()
    prices = await PriceStore(engine).current(editing.model.name)
    named = [("", row.listed), *((each.name, each.accounts) for each in editing.lists)]
    return Scopes(
        lists=[_scope(name, accounts, prices) for name, accounts in named],
        discounts=_discounts(row.discounted, row.least, row.most),
    )


def _scope(name: str, accounts: int, prices: Sequence[PriceRecord]) -> ListScope:
    mine = [each for each in prices if (each.price_list or "") == name]
    return ListScope(
        name=name,
        accounts=accounts,
        price=price_words(next((each for each in mine if each.state == "in_force"), None)),
        scheduled=next((each for each in mine if each.state == "scheduled"), None),
    )


def _discounts(accounts: int, least: int | None, most: int | None) -> str:
    if not accounts or least is None or most is None:
        return "No account has a discount."
    if accounts == 1:
        return f"1 account has {percent(most)} off everything."
    spread = percent(least) if least == most else f"{percent(least)} to {percent(most)}"
    return f"{accounts:,} accounts have {spread} off everything."
