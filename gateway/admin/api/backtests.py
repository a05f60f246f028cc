"""`/admin/api/backtests`."""

from typing import Annotated

import msgspec
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter

from gateway.admin.api.price_bodies import BeginBacktest
from gateway.catalog.model import Sold
from gateway.errors import InvalidRequest
from gateway.ledger.audit import Actor
from gateway.ledger.prices.texts import minimum_of, rows_of
from gateway.pricing.backtest import Backtest, Draft
from gateway.reports.backtest.asking import discount_draft, price_draft
from gateway.reports.backtest.jobs import Backtests

BacktestId = Annotated[str, PathParameter(description="A backtest's id: `bt_...`")]


class BacktestList(msgspec.Struct, frozen=True, kw_only=True):
    """The latest backtests."""

    backtests: list[Backtest]


class BacktestsController(Controller):
    """Past usage rated again under a draft."""

    path = "/backtests"
    tags = ("Admin",)
    opt = {"needs": "billing"}

    @post(status_code=202, summary="Rate the usage of the last days again under a draft")
    async def begin(
        self, data: JSONBody[BeginBacktest], backtests: NamedDependency[Backtests], by: NamedDependency[Actor]
    ) -> Backtest:
        """Ask for it; a settler works it off. Nothing changes by it."""
        return await backtests.begin(await _draft(data, backtests), data.days, by.name)

    @get(summary="The latest backtests")
    async def list_backtests(self, backtests: NamedDependency[Backtests]) -> BacktestList:
        """List them, the latest first."""
        return BacktestList(backtests=list(await backtests.list()))

    @get("/{backtest_id:str}", summary="How far a backtest is, and what it found")
    async def show(self, backtest_id: BacktestId, backtests: NamedDependency[Backtests]) -> Backtest:
        """Show one."""
        return await backtests.read(backtest_id)

    @post("/{backtest_id:str}/cancel", status_code=200, summary="Call a backtest off")
    async def cancel(self, backtest_id: BacktestId, backtests: NamedDependency[Backtests]) -> Backtest:
        """Call it off; one that is over stays as it is."""
        return await backtests.cancel(backtest_id)


async def _draft(data: BeginBacktest, backtests: Backtests) -> Draft:
    if (data.model is None) == (data.account_id is None):
        raise InvalidRequest(
            "Name either a 'model' with its 'price', or an 'account_id' with its 'discount_ppm'.", param="model"
        )
    if data.account_id is not None:
        return await discount_draft(backtests.engine, data.account_id, data.discount_ppm)
    sold = Sold(rows_of(data.price), minimum_of(data.minimum_usd))
    return await price_draft(backtests.engine, data.model or "", data.price_list, sold, data.outcome)
