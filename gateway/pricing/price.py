"""Price components and versions."""

from datetime import datetime
from typing import Literal, get_args

import msgspec

from gateway.money import price_text
from gateway.pricing.conditions import Condition, when_text
from gateway.pricing.policy import OutcomePolicy

PricedUnit = Literal[
    "request",
    "input_token",
    "cached_input_token",
    "output_token",
    "reasoning_token",
    "character",
    "image",
    "megapixel",
    "step",
    "audio_second",
    "video_second",
]
"""What a component multiplies."""

PRICED_UNITS: tuple[PricedUnit, ...] = get_args(PricedUnit)


class PriceComponent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A price of `picos` (1e-12 US dollars) for each `unit`, for the requests of which all conditions hold.

    Of the rows of one unit the first that holds counts.
    """

    unit: PricedUnit
    picos: int
    when: tuple[Condition, ...] = ()

    @property
    def words(self) -> str:
        """Its conditions in words; empty for none."""
        return when_text(self.when)

    @property
    def usd(self) -> str:
        """The price of one unit as an exact decimal of US dollars."""
        return price_text(self.picos)


class PriceVersion(msgspec.Struct, frozen=True):
    """The price of one model from an instant on. Never edited, only superseded."""

    id: int
    model_id: int
    components: tuple[PriceComponent, ...]
    valid_from: datetime
    outcome: OutcomePolicy = OutcomePolicy()
    """What other outcomes than success cost under it."""
    minimum_nanos: int = 0
    """The least that a request costs which is charged at all."""
    price_list_id: int | None = None
    """Whose prices it is of; None for the list price."""
