"""Price versions and lists as they are told: plain data."""

from datetime import datetime
from typing import Literal

import msgspec

from gateway.catalog.model import Sold
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent

PriceState = Literal["past", "in_force", "scheduled", "cancelled"]
PriceDoor = Literal["file", "dashboard", "api"]


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """How a version was called off before it came into force."""

    at: datetime
    author: str
    reason: str


class PriceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A price version: never edited, only superseded."""

    id: int
    model: str
    model_id: int
    price_list: str | None
    """None for the list price."""
    price_list_id: int | None
    rows: tuple[PriceComponent, ...]
    """None of them: not for sale from then on; in a price list, the list price again."""
    minimum_nanos: int
    outcome: OutcomePolicy
    free: bool
    """Whether it costs nothing, on purpose."""
    state: PriceState
    valid_from: datetime
    until: datetime | None
    """When the next version came or will come into force; None for never yet."""
    created_at: datetime
    door: str
    author: str
    reason: str
    source: str
    """Of a version from a file, what was applied."""
    cancelled: Cancelled | None

    @property
    def sold(self) -> Sold:
        """What it says."""
        return Sold(self.rows, self.minimum_nanos)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a new version is to say."""

    rows: tuple[PriceComponent, ...]
    minimum_nanos: int = 0
    outcome: OutcomePolicy | None = None
    """None leaves what other outcomes than success cost as it is."""
    free: bool = False
    """Has to be true where all rows are zero: nobody gives a model away by a slip."""

    @property
    def sold(self) -> Sold:
        """What it says."""
        return Sold(self.rows, self.minimum_nanos)


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """A draft that is to come into force."""

    model: str
    draft: Draft
    price_list: str | None = None
    """The name of a list; None for the list price."""
    valid_from: datetime | None = None
    """None is now."""
    base: int | None = None
    """The newest version of this price that its author saw, 0 for none; where another has come since, it is refused.
    None publishes whatever has come."""
    reason: str = ""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a change."""

    price: PriceRecord
    revision: int
    """Gateways that have this revision of the catalog have the change."""
    audit_id: int


class PriceList(msgspec.Struct, frozen=True, kw_only=True):
    """Prices for some accounts only."""

    id: int
    name: str
    created_at: datetime
    models: int
    """How many it prices now."""
    accounts: int
    """How many pay by it."""
