"""Price lines for people and programs to read: every figure an exact decimal string."""

import msgspec

from gateway.contract.units import Units
from gateway.money import attos_text, decimal_text, price_text
from gateway.pricing.price import PricedUnit, PriceVersion
from gateway.pricing.rate import line_attos, quantities

PLACES: dict[PricedUnit, int] = {"megapixel": 6, "audio_second": 3, "video_second": 3}
"""The decimal places from the measured quantity to the priced unit: pixels to megapixels, milliseconds to seconds."""


class PriceLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a quote or a charge: quantity times price is the amount, exactly."""

    unit: PricedUnit
    quantity: str
    """In priced units: tokens, megapixels, seconds."""
    price_usd: str
    """Of one unit."""
    amount_usd: str
    """Not rounded: only the sum of all lines is."""


def price_lines(price: PriceVersion, units: Units, requests: int = 1) -> tuple[PriceLine, ...]:
    """Write the lines of a price for measured units, in the order of its components."""
    return tuple(
        PriceLine(
            unit=component.unit,
            quantity=decimal_text(quantity, PLACES[component.unit]) if component.unit in PLACES else str(quantity),
            price_usd=price_text(component.picos),
            amount_usd=attos_text(line_attos(component, quantity)),
        )
        for component, quantity in quantities(price, units, requests)
    )
