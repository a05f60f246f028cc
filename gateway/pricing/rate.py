"""From measured units to a charge: exact integers, summed in attos, rounded once, half to even.

A component multiplies a whole number of measured quantities: tokens, characters, pixels, milliseconds.
`ATTOS` is what one picodollar per priced unit makes of one measured quantity, so megapixels and seconds
are exact too: 1 pico a megapixel is 1 atto a pixel, 1 pico a second is 1000 attos a millisecond.
"""

from collections.abc import Callable
from functools import lru_cache

from gateway.contract.states import Outcome
from gateway.contract.units import Units
from gateway.money import ATTOS_PER_NANO, ATTOS_PER_PICO, MAX_NANOS, round_attos
from gateway.pricing.conditions import Traits
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent, PricedUnit, PriceVersion
from gateway.pricing.rows import rows_for
from gateway.pricing.terms import NO_TERMS, WHOLE_PPM, Terms

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

_REST: dict[PricedUnit, Callable[[Units], int]] = {
    "cached_input_token": lambda units: max(units.input_tokens - units.cached_tokens, 0),
    "reasoning_token": lambda units: max(units.output_tokens - units.reasoning_tokens, 0),
}
"""What is left of a whole where a part of it has a price of its own."""


def measured_quantity(unit: PricedUnit, units: Units, requests: int = 1) -> int:
    """Give what was measured of a unit: tokens, characters, pixels, milliseconds.

    An engine that claims more cached tokens than input tokens is not believed: the smaller number counts.
    """
    return requests if unit == "request" else _MEASURED[unit](units)


def quantities(
    price: PriceVersion, units: Units, requests: int = 1, traits: Traits = NO_TERMS.traits
) -> list[tuple[PriceComponent, int]]:
    """Give each component that counts its measured quantity. Raises NotSold as `rows_for` does.

    Cached and reasoning tokens count in their own component where the price has one, and as plain input
    and output tokens where it has none.
    """
    rows = rows_for(price.components, traits)
    counted: dict[PricedUnit, int] = {
        component.unit: measured_quantity(component.unit, units, requests) for component in rows
    }
    for part, whole in _PART_OF.items():
        if part in counted and whole in counted:
            counted[whole] -= counted[part]
    return [(component, counted[component.unit]) for component in rows]


def line_attos(component: PriceComponent, quantity: int) -> int:
    """Price one line exactly: `quantity` as `quantities` gives it."""
    return component.picos * quantity * ATTOS[component.unit]


def rate_nanos(price: PriceVersion, units: Units, requests: int = 1, terms: Terms = NO_TERMS) -> int:
    """Price units and `requests` (0 or 1): all lines summed exactly, then rounded once. Never below zero.

    The minimum counts where a request does; the discount is off everything. Raises NotSold as `rows_for` does.
    """
    plan = _plan(price.components)
    if plan is None:
        plan = _plan_of_rows(price.components, terms.traits_at(price.id))
    attos = 0
    for picos, measure in plan:
        attos += picos * (requests if measure is None else measure(units))
    if price.minimum_nanos and requests:
        attos = max(attos, price.minimum_nanos * ATTOS_PER_NANO)
    if terms.discount_ppm:
        return max(0, round_attos(attos * (WHOLE_PPM - terms.discount_ppm), WHOLE_PPM))
    return max(0, round_attos(attos))


def cost_nanos(
    components: tuple[PriceComponent, ...], units: Units, requests: int = 1, traits: Traits = NO_TERMS.traits
) -> int:
    """Price units at components that are no version of a price, such as those an upstream charges the operator.

    Raises NotSold as `rows_for` does.
    """
    attos = 0
    plan = _plan(components)
    for picos, measure in _plan_of_rows(components, traits) if plan is None else plan:
        attos += picos * (requests if measure is None else measure(units))
    return max(0, round_attos(attos))


def depends(price: PriceVersion) -> bool:
    """Say whether the price has conditions, so that it can be rated only with the traits of a request."""
    return _plan(price.components) is None


Plan = tuple[tuple[int, Callable[[Units], int] | None], ...]
"""Attos for one measured quantity, and what measures it; None for the request itself."""


def _plan_of_rows(components: tuple[PriceComponent, ...], traits: Traits) -> Plan:
    rows = rows_for(components, traits)
    return _plan(tuple([PriceComponent(row.unit, row.picos) for row in rows])) or ()


@lru_cache(maxsize=16_384)
def _plan(components: tuple[PriceComponent, ...]) -> Plan | None:
    """Prepare a price for rating; None for one with conditions, of which the rows that count are to be found first.

    The same sum as that of `price_lines`, which the tests compare.
    """
    if any(component.when for component in components):
        return None
    priced = {component.unit for component in components}
    plan = []
    for component in components:
        part = next((part for part, whole in _PART_OF.items() if whole == component.unit and part in priced), None)
        measure = None if component.unit == "request" else _MEASURED[component.unit]
        if part is not None:
            measure = _REST[part]
        plan.append((component.picos * ATTOS[component.unit], measure))
    return tuple(plan)


def charge_nanos(
    price: PriceVersion,
    units: Units,
    outcome: Outcome,
    policy: OutcomePolicy,
    forward_began: bool,
    terms: Terms = NO_TERMS,
) -> int:
    """Say what an ended request costs, before settlement caps it at the hold.

    A success costs what was measured and the per-request component once, and at least the minimum. Other
    outcomes cost what the policy says: "nothing"; "produced", the measured units, and the per-request component
    and the minimum once the forward phase began; "full", `WHOLE_HOLD`.
    """
    if outcome == "succeeded":
        return rate_nanos(price, units, terms=terms)
    when = getattr(policy, outcome)
    if when == "nothing":
        return 0
    if when == "full":
        return WHOLE_HOLD
    return rate_nanos(price, units, requests=1 if forward_began else 0, terms=terms)
