"""Price lists, prices for some accounts only: which there are, what they price, who pays by them; and discounts."""

from collections.abc import Sequence
from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.models.listing import price_words
from gateway.admin.site.page import action, page
from gateway.admin.site.view import View
from gateway.errors import Conflict, InvalidRequest
from gateway.ledger.prices.lists import PriceLists
from gateway.ledger.prices.records import PriceRecord
from gateway.ledger.prices.store import PriceStore
from gateway.reports.account_standing import SPENT_DAYS, AccountRow, account_rows

HOME = "/admin/prices/lists"
COLUMNS = ("id", "name", "models", "accounts", "spent_30d_nanos", "created_at")
LIST_COLUMNS = ("account_id", "name", "discount_ppm", "spent_30d_nanos")
NAME_HINT = "Lower-case letters, digits and -"
REFUSED = (InvalidRequest, Conflict)
MOST_SHOWN = 200


@page("/admin/prices/lists")
async def show_lists(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Show all price lists, and who has a discount."""
    lists, rows = await PriceLists(engine).list(), await account_rows(engine)
    spent = {one.id: sum([row.spent_30d_nanos for row in rows if row.price_list_id == one.id]) for one in lists}
    cells = [(one.id, one.name, one.models, one.accounts, spent[one.id], one.created_at.isoformat()) for one in lists]
    if view.format == "json":
        return view.json({"price_lists": [dict(zip(COLUMNS, row, strict=True)) for row in cells]})
    if view.format == "csv":
        return view.csv("price-lists", COLUMNS, cells)
    discounted = sorted((row for row in rows if row.discount_ppm), key=lambda row: (-row.discount_ppm, row.name))
    return view.render(
        "models/lists.html",
        lists=lists,
        spent=spent,
        spent_days=SPENT_DAYS,
        discounted=discounted[:MOST_SHOWN],
        more=max(len(discounted) - MOST_SHOWN, 0),
        names={one.id: one.name for one in lists},
    )


@page("/admin/prices/lists/new", needs="billing", data=False)
async def ask_list(view: NamedDependency[View]) -> Response[Any]:
    """Ask for a name."""
    return _ask_list(view)


@action("/admin/prices/lists/new", needs="billing")
async def create_list(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """Make an empty list."""
    form = await view.form()
    try:
        made = await PriceLists(engine).create(form.get("name", ""), view.actor)
    except REFUSED as error:
        return _ask_list(view, status=422, values=form, errors={"name": error.message})
    return view.redirect(f"{HOME}/{made.name}", toast=f"The price list {made.name} is there: price models in it.")


@page("/admin/prices/lists/{name:str}", data=False)
async def show_list(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], name: FromPath[str]
) -> Response[Any]:
    """Show one list: what it prices, beside the list price, and who pays by it."""
    found = await PriceLists(engine).show(name)
    paying = sorted(
        (row for row in await account_rows(engine) if row.price_list_id == found.id),
        key=lambda row: (-row.spent_30d_nanos, row.name),
    )
    if view.wants_data:
        return _paying(view, name, paying)
    prices = await PriceStore(engine).current()
    return view.render(
        "models/one_list.html",
        one=found,
        prices=[each for each in prices if each.price_list == name and (each.rows or each.state == "scheduled")],
        unpriced=sorted({each.model for each in prices} - {each.model for each in prices if each.price_list == name}),
        words=price_words,
        listed=_listed(prices),
        paying=paying[:MOST_SHOWN],
        spent=sum([row.spent_30d_nanos for row in paying]),
        spent_days=SPENT_DAYS,
    )


@page("/admin/prices/lists/{name:str}/rename", needs="billing", data=False)
async def ask_rename(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], name: FromPath[str]
) -> Response[Any]:
    """Ask for another name."""
    return await _ask_rename(view, engine, name)


@action("/admin/prices/lists/{name:str}/rename", needs="billing")
async def rename(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], name: FromPath[str]
) -> Response[Any]:
    """Give a list another name."""
    form = await view.form()
    try:
        done = await PriceLists(engine).rename(name, form.get("name", ""), view.actor)
    except REFUSED as error:
        return await _ask_rename(view, engine, name, status=422, values=form, errors={"name": error.message})
    return view.redirect(f"{HOME}/{done.name}", toast=f"{name} is {done.name} now.")


@page("/admin/prices/lists/{name:str}/remove", needs="billing", data=False)
async def ask_remove(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], name: FromPath[str]
) -> Response[Any]:
    """Ask before a list goes."""
    return await _ask_remove(view, engine, name)


@action("/admin/prices/lists/{name:str}/remove", needs="billing")
async def remove(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], name: FromPath[str]
) -> Response[Any]:
    """Remove a list that was never used."""
    try:
        await PriceLists(engine).remove(name, view.actor)
    except REFUSED as error:
        return await _ask_remove(view, engine, name, status=422, errors={"": error.message})
    return view.redirect(HOME, toast=f"The price list {name} is gone.")


def _ask_list(view: View, **given: Any) -> Response[Any]:
    return view.confirm(
        title="New price list",
        act=f"{HOME}/new",
        button="Make it",
        effects=["It is empty at first: what it does not price costs its list price."],
        fields=[{"name": "name", "label": "Name", "required": True, "hint": NAME_HINT}],
        back=HOME,
        **given,
    )


async def _ask_rename(view: View, engine: AsyncEngine, name: str, **given: Any) -> Response[Any]:
    found = await PriceLists(engine).show(name)
    return view.confirm(
        title=f"Rename {name}",
        act=f"{HOME}/{name}/rename",
        button="Rename it",
        effects=[f"Its {found.models:,} prices and {found.accounts:,} accounts stay as they are."],
        fields=[{"name": "name", "label": "Name", "value": name, "required": True, "hint": NAME_HINT}],
        back=f"{HOME}/{name}",
        **given,
    )


async def _ask_remove(view: View, engine: AsyncEngine, name: str, **given: Any) -> Response[Any]:
    found = await PriceLists(engine).show(name)
    return view.confirm(
        title=f"Remove {name}",
        act=f"{HOME}/{name}/remove",
        button="Remove it",
        danger=True,
        effects=[
            f"{found.accounts:,} accounts pay by it, and it prices {found.models:,} models.",
            "Only a list that never priced a model and has no account can be removed: charges refer to its prices.",
        ],
        back=f"{HOME}/{name}",
        **given,
    )


def _listed(prices: Sequence[PriceRecord]) -> dict[str, str]:
    return {each.model: price_words(each) for each in prices if each.price_list is None and each.state == "in_force"}


def _paying(view: View, name: str, paying: Sequence[AccountRow]) -> Response[Any]:
    cells = [(row.id, row.name, row.discount_ppm, row.spent_30d_nanos) for row in paying]
    if view.format == "json":
        return view.json({"price_list": name, "accounts": [dict(zip(LIST_COLUMNS, row, strict=True)) for row in cells]})
    return view.csv(f"price-list-{name}", LIST_COLUMNS, cells)


LISTS = (show_lists, ask_list, create_list, show_list, ask_rename, rename, ask_remove, remove)
