"""From measured units to a charge: exact integers, summed in attos, rounded once, half to even.

A component multiplies a whole number of measured quantities: tokens, characters, pixels, milliseconds.
`ATTOS` is what one picodollar per priced unit makes of one measured quantity, so megapixels and seconds
are exact too: 1 pico a megapixel is 1 atto a pixel, 1 pico a second is 1000 attos a millisecond.
"""

from collections.abc import Callable

from gateway.contract.states import Outcome
from gateway.contract.units import Units
from gateway.money import ATTOS_PER_PICO, MAX_NANOS, round_attos
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent, PricedUnit, PriceVersion

WHOLE_HOLD = MAX_NANOS
"""The charge that means `all that was held`: settlement caps every charge at its hold."""

PIXELS_PER_MEGAPIXEL = 1_000_000
MS_PER_SECOND = 1_000

ATTOS: dict[PricedUnit, int] = {
    "request": ATTOS_PER_PICO,
    "input_token": ATTOS_PER_PICO,
    "cached_input_token": ATTOS_PER_PICO,
    "output_token": ATTOS_PER_PICO,
    "reasoning_token": ATTOS_PER_PICO,
    "character": ATTOS_PER_PICO,
    "image": ATTOS_PER_PICO,
    "megapixel": ATTOS_PER_PICO // PIXELS_PER_MEGAPIXEL,
    "step": ATTOS_PER_PICO,
    "audio_second": ATTOS_PER_PICO // MS_PER_SECOND,
    "video_second": ATTOS_PER_PICO // MS_PER_SECOND,
}


_MEASURED: dict[PricedUnit, Callable[[Units], int]] = {
    "input_token": lambda units: units.input_tokens,
    "cached_input_token": lambda units: min(units.cached_tokens, units.input_tokens),
    "output_token": lambda units: units.output_tokens,
    "reasoning_token": lambda units: min(units.reasoning_tokens, units.output_tokens),
    "character": lambda units: units.characters,
    "image": lambda units: units.images,
    "megapixel": lambda units: units.pixels,
    "step": lambda units: units.steps,
    "audio_second": lambda units: units.audio_ms,
    "video_second": lambda units: units.video_ms,
}

_PART_OF: dict[PricedUnit, PricedUnit] = {"cached_input_token": "input_token", "reasoning_token": "output_token"}


def measured_quantity(unit: PricedUnit, units: Units, requests: int = 1) -> int:
    """Give what was measured of a unit: tokens, characters, pixels, milliseconds.

    An engine that claims more cached tokens than input tokens is not believed: the smaller number counts.
    """
    return requests if unit == "request" else _MEASURED[unit](units)


def quantities(price: PriceVersion, units: Units, requests: int = 1) -> list[tuple[PriceComponent, int]]:
    """Give each component its measured quantity.

    Cached and reasoning tokens count in their own component where the price has one, and as plain input
    and output tokens where it has none.
    """
    counted: dict[PricedUnit, int] = {
        component.unit: measured_quantity(component.unit, units, requests) for component in price.components
    }
    for part, whole in _PART_OF.items():
        if part in counted and whole in counted:
            counted[whole] -= counted[part]
    return [(component, counted[component.unit]) for component in price.components]


def line_attos(component: PriceComponent, quantity: int) -> int:
    """Price one line exactly: `quantity` as `quantities` gives it."""
    return component.picos * quantity * ATTOS[component.unit]


def rate_nanos(price: PriceVersion, units: Units, requests: int = 1) -> int:
    """Price units and `requests` (0 or 1): all lines summed exactly, then rounded once. Never below zero."""
    lines = quantities(price, units, requests)
    return max(0, round_attos(sum([line_attos(component, quantity) for component, quantity in lines])))


def charge_nanos(
    price: PriceVersion, units: Units, outcome: Outcome, policy: OutcomePolicy, forward_began: bool
) -> int:
    """Say what an ended request costs, before settlement caps it at the hold.

    A success costs what was measured and the per-request component once. Other outcomes cost what the
    policy says: "nothing"; "produced", the measured units, and the per-request component once the
    forward phase began; "full", `WHOLE_HOLD`.
    """
    if outcome == "succeeded":
        return rate_nanos(price, units)
    when = getattr(policy, outcome)
    if when == "nothing":
        return 0
    if when == "full":
        return WHOLE_HOLD
    return rate_nanos(price, units, requests=1 if forward_began else 0)
