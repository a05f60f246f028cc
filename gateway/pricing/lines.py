"""Price lines for people and programs to read: every figure an exact decimal string."""

from typing import Any, Literal

import msgspec

from gateway.contract.units import Units
from gateway.money import ATTOS_PER_NANO, attos_text, decimal_text, price_text, usd_text
from gateway.pricing.conditions import when_plain
from gateway.pricing.price import PricedUnit, PriceVersion
from gateway.pricing.rate import line_attos, quantities
from gateway.pricing.terms import NO_TERMS, WHOLE_PPM, Terms

PLACES: dict[PricedUnit, int] = {"megapixel": 6, "audio_second": 3, "video_second": 3}
"""The decimal places from the measured quantity to the priced unit: pixels to megapixels, milliseconds to seconds."""

PPM_PLACES = 6
ATTO_PLACES = 18


class PriceLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a quote or a charge: quantity times price is the amount, exactly."""

    unit: PricedUnit | Literal["minimum", "discount"]
    quantity: str
    """In priced units: tokens, megapixels, seconds. Of a discount, the share that is off."""
    price_usd: str
    """Of one unit. Of a discount, all that it is off, below zero."""
    amount_usd: str
    """Not rounded: only the sum of all lines is."""
    when: dict[str, Any] = {}
    """The conditions of the row that counts, as in the catalog."""


def price_lines(price: PriceVersion, units: Units, requests: int = 1, terms: Terms = NO_TERMS) -> tuple[PriceLine, ...]:
    """Write the lines of a price for measured units, in the order of its components; then minimum and discount.

    The rest up to the minimum is a line, and so is what the discount takes off: the lines sum exactly to what
    `rate_nanos` rounds. Raises NotSold as `rows_for` does.
    """
    counted = quantities(price, units, requests, terms.traits_at(price.id))
    lines = [
        PriceLine(
            unit=component.unit,
            quantity=decimal_text(quantity, PLACES[component.unit]) if component.unit in PLACES else str(quantity),
            price_usd=price_text(component.picos),
            amount_usd=attos_text(line_attos(component, quantity)),
            when=when_plain(component.when),
        )
        for component, quantity in counted
    ]
    attos = sum(line_attos(component, quantity) for component, quantity in counted)
    rest = price.minimum_nanos * ATTOS_PER_NANO - attos if requests else 0
    if price.minimum_nanos and rest > 0:
        attos += rest
        lines.append(PriceLine(unit="minimum", quantity="1", price_usd=attos_text(rest), amount_usd=attos_text(rest)))
    if terms.discount_ppm:
        lines.append(_discount(attos, terms.discount_ppm))
    return tuple(lines)


def _discount(attos: int, ppm: int) -> PriceLine:
    return PriceLine(
        unit="discount",
        quantity=decimal_text(ppm, PPM_PLACES),
        price_usd=attos_text(-attos),
        amount_usd=decimal_text(-attos * ppm, ATTO_PLACES + PPM_PLACES),
    )


def minimum_usd(price: PriceVersion) -> str:
    """Write the minimum of a price as an exact decimal of US dollars."""
    return usd_text(price.minimum_nanos)


assert WHOLE_PPM == 10**PPM_PLACES
