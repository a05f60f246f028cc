"""What the admin API takes and answers of prices: amounts are exact decimals of US dollars, as text."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.admin.api.bodies import Id, Instant, Reason
from gateway.ledger.prices.records import Cancelled, PriceList, PriceRecord, Published
from gateway.ledger.prices.texts import MOST_ROWS, RowText, RowView, row_views
from gateway.money import usd_text
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.terms import WHOLE_PPM

ModelName = Annotated[str, Meta(min_length=1, max_length=128)]
ListName = Annotated[str, Meta(min_length=1, max_length=63)]
Rows = Annotated[list[RowText], Meta(max_length=MOST_ROWS)]
Usd = Annotated[str, Meta(max_length=64)]


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all bodies share."""


class BeginBacktest(_Body, frozen=True):
    """A draft to rate past usage under: a price of a model, or a discount of an account."""

    days: int = 30
    """7, 30 or 90."""
    model: ModelName | None = None
    price: Rows = []
    minimum_usd: Usd | None = None
    outcome: OutcomePolicy | None = None
    price_list: ListName | None = None
    account_id: Id | None = None
    discount_ppm: Annotated[int, Meta(ge=0, le=WHOLE_PPM)] = 0


class PublishPrice(_Body, frozen=True):
    """A new price of a model: no rows take it off sale, and in a price list give it its list price again."""

    model: ModelName
    price: Rows
    minimum_usd: Usd | None = None
    outcome: OutcomePolicy | None = None
    free: bool = False
    price_list: ListName | None = None
    valid_from: Instant | None = None
    base: Annotated[int, Meta(ge=0)] | None = None
    reason: Reason = ""


class CancelPrice(_Body, frozen=True):
    """Why a scheduled price is called off."""

    reason: Reason = ""


class ReinstatePrice(_Body, frozen=True):
    """From when an old price counts again."""

    valid_from: Instant | None = None
    base: Annotated[int, Meta(ge=0)] | None = None
    reason: Reason = ""


class NewPriceList(_Body, frozen=True):
    """A price list, or its new name."""

    name: ListName


class Pricing(_Body, frozen=True):
    """Whose prices an account pays, null for list prices, and how many millionths are off them."""

    price_list: ListName | None
    discount_ppm: Annotated[int, Meta(ge=0, le=WHOLE_PPM)]


class PriceView(msgspec.Struct, frozen=True, kw_only=True):
    """A price version."""

    id: Id
    model: str
    price_list: str | None
    price: list[RowView]
    minimum_usd: str | None
    outcome: OutcomePolicy
    free: bool
    state: str
    valid_from: datetime
    until: datetime | None
    created_at: datetime
    door: str
    author: str
    reason: str
    cancelled: Cancelled | None


class PublishedView(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a change; `GET /admin/api/prices/gateways?revision=` says which gateways have it."""

    price: PriceView
    revision: int
    audit_id: int


class PriceViews(msgspec.Struct, frozen=True, kw_only=True):
    """Price versions."""

    prices: list[PriceView]


class PriceListViews(msgspec.Struct, frozen=True, kw_only=True):
    """All price lists."""

    price_lists: list[PriceList]


class ArrivalView(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the gateways that live have a revision of the catalog, and when the last of them got it."""

    gateways: int
    having: int
    last_at: datetime | None


def price_view(record: PriceRecord) -> PriceView:
    """Show a price version."""
    return PriceView(
        id=record.id,
        model=record.model,
        price_list=record.price_list,
        price=row_views(record.rows),
        minimum_usd=usd_text(record.minimum_nanos) if record.minimum_nanos else None,
        outcome=record.outcome,
        free=record.free,
        state=record.state,
        valid_from=record.valid_from,
        until=record.until,
        created_at=record.created_at,
        door=record.door,
        author=record.author,
        reason=record.reason,
        cancelled=record.cancelled,
    )


def published_view(done: Published) -> PublishedView:
    """Show what came of a change."""
    return PublishedView(price=price_view(done.price), revision=done.revision, audit_id=done.audit_id)
