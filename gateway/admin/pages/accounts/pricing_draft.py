"""What the page of an account's terms works with: what holds, a draft, and what its requests cost under both."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.amounts import percent_text, read_percent
from gateway.admin.site.figures import percent
from gateway.catalog.model import Model, Snapshot
from gateway.catalog.snapshot import SnapshotSource
from gateway.catalog.typical import TYPICAL, default_rows
from gateway.errors import InvalidRequest
from gateway.ledger.accounts import Accounts
from gateway.ledger.prices.lists import PriceLists
from gateway.ledger.prices.records import PriceList
from gateway.ledger.records import Account
from gateway.pricing.backtest import Backtest, DiscountDraft, digest_of
from gateway.pricing.rate import rate_nanos
from gateway.pricing.terms import Terms
from gateway.reports.backtest.jobs import Backtests
from gateway.reports.figures import Figures
from gateway.reports.ranges import HOUR, Range
from gateway.reports.scope import Scope, Sums

SPENT_DAYS = 30
MOST_MODELS = 5
MOST_BACKTESTS = 50


class Typical(msgspec.Struct, frozen=True, kw_only=True):
    """A typical request of a model that the account calls, now and under the draft; None where it is not for sale."""

    model: str
    task: str
    spent_nanos: int
    old_nanos: int | None
    new_nanos: int | None


class Pricing(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page shows."""

    account: Account
    lists: Sequence[PriceList]
    list_now: str
    """The name of the list it pays by; empty for the list price."""
    list_name: str
    """That of the draft."""
    percent: str
    """The discount of the draft, as it is typed."""
    discount_ppm: int
    spent: Sums
    typical: Sequence[Typical]
    backtests: Sequence[Backtest]
    errors: dict[str, str]

    @property
    def base(self) -> str:
        """What the author of a draft looks at, to be sent along with it."""
        return f"{self.account.price_list_id or 0}-{self.account.discount_ppm}"

    @property
    def is_changed(self) -> bool:
        """Whether the draft differs from what holds."""
        return (self.list_name, self.discount_ppm) != (self.list_now, self.account.discount_ppm)

    @property
    def words_now(self) -> str:
        """What it pays, in words."""
        return _words(self.list_now, self.account.discount_ppm)

    @property
    def words(self) -> str:
        """What it would pay, in words."""
        return _words(self.list_name, self.discount_ppm)

    @property
    def asked(self) -> DiscountDraft:
        """The discount as a backtest rates it."""
        return DiscountDraft(account_id=self.account.id, discount_ppm=self.discount_ppm)

    @property
    def fresh(self) -> Backtest | None:
        """The latest finished backtest of this very discount, where the list stays as it is."""
        digest = digest_of(self.asked)
        found = (each for each in self.backtests if each.digest == digest and each.state == "done")
        return next(found, None) if self.list_name == self.list_now else None


async def read_pricing(
    engine: AsyncEngine, catalog: SnapshotSource, account_id: int, given: Mapping[str, str]
) -> Pricing:
    """Read the page; what is wrong with the draft stands in `errors`, by field. Raises NotFound."""
    account, lists = await Accounts(engine).show(account_id), await PriceLists(engine).list()
    list_now = next((each.name for each in lists if each.id == account.price_list_id), "")
    errors: dict[str, str] = {}
    list_name = given.get("list", list_now).strip()
    chosen = next((each for each in lists if each.name == list_name), None)
    if list_name and chosen is None:
        errors["list"] = "There is no such price list."
    percent, ppm = given.get("discount", percent_text(account.discount_ppm)).strip(), account.discount_ppm
    try:
        ppm = read_percent(percent, "discount")
    except InvalidRequest as error:
        errors["discount"] = error.message
    to_at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
    during = Range(to_at - timedelta(days=SPENT_DAYS), to_at)
    used = await Figures(engine).table(during, Scope(account_id=account_id), by="model", limit=MOST_MODELS)
    snapshot, spent = catalog.snapshot(), {group.model or "": group.sums.charge_nanos for group in used.rows}
    return Pricing(
        account=account,
        lists=lists,
        list_now=list_now,
        list_name=list_name,
        percent=percent,
        discount_ppm=ppm,
        spent=used.total,
        typical=_typical(snapshot, account, chosen.id if chosen else None, ppm, spent),
        backtests=await Backtests(engine).list(limit=MOST_BACKTESTS),
        errors=errors,
    )


def _typical(
    snapshot: Snapshot, account: Account, list_id: int | None, ppm: int, spent: Mapping[str, int]
) -> list[Typical]:
    """Price a typical request of the models that it spends most on, else of those that a list of the two prices."""
    in_lists = {
        number for each in (account.price_list_id, list_id) for number in snapshot.price_lists.get(each or 0, {})
    }
    models = sorted(
        [model for model in snapshot.models.values() if snapshot.price_for(model, list_id) or model.price],
        key=lambda model: (-spent.get(model.name, 0), model.id not in in_lists, model.name),
    )
    return [
        Typical(
            model=model.name,
            task=model.tasks[0],
            spent_nanos=spent.get(model.name, 0),
            old_nanos=_cost(snapshot, model, account.price_list_id, account.discount_ppm),
            new_nanos=_cost(snapshot, model, list_id, ppm),
        )
        for model in models[:MOST_MODELS]
    ]


def _cost(snapshot: Snapshot, model: Model, list_id: int | None, ppm: int) -> int | None:
    price = snapshot.price_for(model, list_id)
    if price is None:
        return None
    plain = msgspec.structs.replace(price, components=default_rows(model, price))
    return rate_nanos(plain, TYPICAL[model.tasks[0]], terms=Terms(discount_ppm=ppm))


def _words(list_name: str, ppm: int) -> str:
    prices = f"the prices of {list_name}" if list_name else "list prices"
    return f"{prices} less {percent(ppm)}" if ppm else prices
