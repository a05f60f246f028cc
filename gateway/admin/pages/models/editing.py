"""What the price editor works with: a model, one of its prices with all versions, a draft, and what is known of it."""

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.models.differences import Difference, differences
from gateway.admin.pages.models.drafts import Draft, Items, compare, draft_of, read_draft
from gateway.admin.pages.models.example import Example, example_of
from gateway.catalog.model import Model, Sold
from gateway.catalog.snapshot import SnapshotSource
from gateway.errors import NotFound
from gateway.ledger.prices.lists import PriceLists
from gateway.ledger.prices.reading import in_force, newest
from gateway.ledger.prices.records import PriceList, PriceRecord
from gateway.ledger.prices.store import PriceStore
from gateway.pricing.backtest import Backtest, PriceDraft, digest_of
from gateway.pricing.policy import OutcomePolicy
from gateway.reports.backtest.jobs import Backtests


class Editing(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the editor shows of one price of a model."""

    model: Model
    draft: Draft
    history: Sequence[PriceRecord]
    lists: Sequence[PriceList]
    backtests: Sequence[Backtest]
    now: PriceRecord | None
    last: int
    """The newest version of this price; 0 for none."""

    @property
    def asked(self) -> PriceDraft:
        """The draft as a backtest rates it."""
        chosen = next((each.id for each in self.lists if each.name == self.draft.price_list), None)
        return PriceDraft(
            model_id=self.model.id,
            model=self.model.name,
            price_list_id=chosen,
            components=self.draft.sold.rows,
            minimum_nanos=self.draft.sold.minimum_nanos,
            outcome=self.draft.outcome,
        )

    @property
    def digest(self) -> str:
        """The draft's name by its content."""
        return digest_of(self.asked)

    @property
    def fresh(self) -> Backtest | None:
        """The latest finished backtest of this very draft."""
        digest = self.digest
        return next((each for each in self.backtests if each.digest == digest and each.state == "done"), None)

    @property
    def stale(self) -> Backtest | None:
        """The latest finished backtest of another draft, where there is none of this one."""
        return None if self.fresh else next((each for each in self.backtests if each.state == "done"), None)

    @property
    def sold(self) -> Sold:
        """What it costs now."""
        return self.now.sold if self.now else Sold()

    @property
    def outcome(self) -> OutcomePolicy:
        """What requests cost now that do not succeed."""
        return self.now.outcome if self.now else self.model.outcome

    @property
    def rebased(self) -> str:
        """The draft as the query of an address, as a draft against the newest version."""
        return urlencode([(name, value) for name, value in self.draft.items if name != "base"])

    @property
    def changes(self) -> list[Difference]:
        """What the draft changes."""
        return differences((self.sold, self.outcome), (self.draft.sold, self.draft.outcome))

    @property
    def example(self) -> Example:
        """A typical request, now and under the draft."""
        return example_of(self.model, self.sold, self.draft.sold)


async def edit(engine: AsyncEngine, catalog: SnapshotSource, items: Items, name: str) -> Editing:
    """Read what the editor shows. Raises NotFound for a model or list that is not there."""
    model = catalog.snapshot().model(name)
    if model is None:
        raise NotFound("There is no such model.", code="model_not_found", param="model")
    price_list = dict(items).get("list", "").strip()
    store = PriceStore(engine)
    history = await store.history(model.name, price_list or None)
    now, last = in_force(history), newest(history)
    base = last.id if last else 0
    outcome = now.outcome if now else model.outcome
    draft = read_draft(items, model, outcome)
    if not draft.given:
        draft = draft_of(now.sold if now else Sold(), outcome, model, price_list, base)
    elif not dict(items).get("base"):
        draft.base = base
    compare(draft, now.sold if now else Sold())
    return Editing(
        model=model,
        draft=draft,
        history=history,
        lists=await PriceLists(engine).list(),
        backtests=await Backtests(engine).list(model_id=model.id, limit=20),
        now=now,
        last=base,
    )
