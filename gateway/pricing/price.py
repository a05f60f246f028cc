"""Price components and versions."""

from datetime import datetime
from typing import Literal, get_args

import msgspec

from gateway.money import price_text

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


class PriceComponent(msgspec.Struct, frozen=True):
    """A price of `picos` (1e-12 US dollars) for each `unit`."""

    unit: PricedUnit
    picos: int

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
