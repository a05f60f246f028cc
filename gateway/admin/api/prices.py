"""`/admin/api/prices` and `/admin/api/price-lists`."""

from typing import Annotated

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter

from gateway.admin.api.accounts import AccountId
from gateway.admin.api.price_bodies import (
    ArrivalView,
    CancelPrice,
    NewPriceList,
    PriceListViews,
    PriceView,
    PriceViews,
    Pricing,
    PublishedView,
    PublishPrice,
    ReinstatePrice,
    price_view,
    published_view,
)
from gateway.ledger.accounts import Accounts
from gateway.ledger.audit import Actor
from gateway.ledger.prices.lists import PriceLists
from gateway.ledger.prices.records import Draft, PriceList, Publication
from gateway.ledger.prices.store import PriceStore
from gateway.ledger.prices.texts import minimum_of, rows_of
from gateway.ledger.records import Account
from gateway.queues.revisions import Revisions, gateways_at

VersionId = Annotated[int, PathParameter(ge=1, le=2**31 - 1)]
OfModel = Annotated[str, QueryParameter(description="The name of a model.")]
OfList = Annotated[str | None, QueryParameter(description="The name of a price list; the list price without it.")]
OfRevision = Annotated[int, QueryParameter(ge=0, description="As the answer to a change says it.")]
Name = Annotated[str, PathParameter(description="The name of a price list.")]


class PricesController(Controller):
    """What models cost."""

    path = "/prices"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @get(summary="What is in force and what is scheduled, of all models and lists")
    async def current(self, prices: NamedDependency[PriceStore]) -> PriceViews:
        """List them by model, list and instant."""
        return PriceViews(prices=[price_view(each) for each in await prices.current()])

    @post(summary="Publish a price, from now or from an instant on")
    async def publish(
        self, data: JSONBody[PublishPrice], prices: NamedDependency[PriceStore], by: NamedDependency[Actor]
    ) -> PublishedView:
        """Make a new version. Requests that are admitted already keep theirs; all gateways follow within a second."""
        draft = Draft(
            rows=rows_of(data.price),
            minimum_nanos=minimum_of(data.minimum_usd),
            outcome=data.outcome,
            free=data.free,
        )
        new = Publication(
            model=data.model,
            draft=draft,
            price_list=data.price_list,
            valid_from=data.valid_from,
            base=data.base,
            reason=data.reason,
        )
        return published_view(await prices.publish(new, by))

    @get("/history", summary="All versions of one price, the latest instant first")
    async def history(
        self, model: OfModel, prices: NamedDependency[PriceStore], price_list: OfList = None
    ) -> PriceViews:
        """Tell who changed it, when, through which door and why; called-off versions among them."""
        return PriceViews(prices=[price_view(each) for each in await prices.history(model, price_list)])

    @get("/gateways", summary="How many gateways have a revision of the catalog")
    async def gateways(self, revision: OfRevision, revisions: NamedDependency[Revisions]) -> ArrivalView:
        """Say how far a change has come."""
        found = await gateways_at(revisions, revision)
        return ArrivalView(gateways=found.gateways, having=found.having, last_at=found.last_at)

    @get("/{version_id:int}", summary="One version")
    async def show(self, version_id: VersionId, prices: NamedDependency[PriceStore]) -> PriceView:
        """Show one version."""
        return price_view(await prices.show(version_id))

    @post("/{version_id:int}/cancel", status_code=200, summary="Call off a scheduled version")
    async def cancel(
        self,
        version_id: VersionId,
        data: JSONBody[CancelPrice],
        prices: NamedDependency[PriceStore],
        by: NamedDependency[Actor],
    ) -> PublishedView:
        """Call it off, before it comes into force; what is in force is superseded and not cancelled."""
        return published_view(await prices.cancel(version_id, by, reason=data.reason))

    @post("/{version_id:int}/reinstate", summary="Publish once more what an old version said")
    async def reinstate(
        self,
        version_id: VersionId,
        data: JSONBody[ReinstatePrice],
        prices: NamedDependency[PriceStore],
        by: NamedDependency[Actor],
    ) -> PublishedView:
        """Make a new version of it."""
        done = await prices.reinstate(version_id, by, valid_from=data.valid_from, base=data.base, reason=data.reason)
        return published_view(done)


class PriceListsController(Controller):
    """Prices for some accounts only."""

    path = "/price-lists"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @get(summary="All price lists, by name")
    async def list_lists(self, price_lists: NamedDependency[PriceLists]) -> PriceListViews:
        """List them, with how many models each prices and how many accounts pay by it."""
        return PriceListViews(price_lists=await price_lists.list())

    @post(summary="Make a price list")
    async def create(
        self, data: JSONBody[NewPriceList], price_lists: NamedDependency[PriceLists], by: NamedDependency[Actor]
    ) -> PriceList:
        """Make an empty list: until it prices a model, that costs its list price."""
        return await price_lists.create(data.name, by)

    @get("/{name:str}", summary="One price list")
    async def show(self, name: Name, price_lists: NamedDependency[PriceLists]) -> PriceList:
        """Show one."""
        return await price_lists.show(name)

    @post("/{name:str}/rename", status_code=200, summary="Give a price list another name")
    async def rename(
        self,
        name: Name,
        data: JSONBody[NewPriceList],
        price_lists: NamedDependency[PriceLists],
        by: NamedDependency[Actor],
    ) -> PriceList:
        """Rename it; its accounts and prices stay."""
        return await price_lists.rename(name, data.name, by)

    @post("/{name:str}/remove", status_code=200, summary="Remove a price list that was never used")
    async def remove(
        self, name: Name, price_lists: NamedDependency[PriceLists], by: NamedDependency[Actor]
    ) -> PriceList:
        """Remove it; answers what it was."""
        return await price_lists.remove(name, by)


class AccountPricingController(Controller):
    """Whose prices an account pays."""

    path = "/accounts"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @post("/{account_id:int}/pricing", status_code=200, summary="Set an account's price list and discount")
    async def set_pricing(
        self,
        account_id: AccountId,
        data: JSONBody[Pricing],
        accounts: NamedDependency[Accounts],
        by: NamedDependency[Actor],
    ) -> Account:
        """Set both; they hold for what is admitted from now on."""
        return await accounts.set_pricing(account_id, list_name=data.price_list, discount_ppm=data.discount_ppm, by=by)
