"""A price as SQL over a row of `usage`: the same integers as those of `gateway.pricing.rate`.

The sum of all lines is a whole number of attos of type numeric, which is exact at any size. Postgres rounds numeric
half away from zero: `rounded` takes one off where that was a tie and made an odd number.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from gateway.contract.states import OUTCOMES
from gateway.money import ATTOS_PER_NANO
from gateway.pricing.conditions import Condition
from gateway.pricing.policy import ChargeWhen, OutcomePolicy
from gateway.pricing.price import PriceComponent, PricedUnit
from gateway.pricing.rate import ATTOS

MODES: dict[ChargeWhen, int] = {"nothing": 0, "produced": 1, "full": 2}

MOST_EXACT = 4 * 10**18
"""What a bigint holds, twice."""

_QUANTITY: dict[PricedUnit, str] = {
    "request": "began",
    "input_token": "input_tokens",
    "cached_input_token": "least(cached_tokens, input_tokens)",
    "output_token": "output_tokens",
    "reasoning_token": "least(reasoning_tokens, output_tokens)",
    "character": "characters",
    "image": "images",
    "megapixel": "pixels",
    "step": "steps",
    "audio_second": "audio_ms",
    "video_second": "video_ms",
}
_REST: dict[tuple[PricedUnit, PricedUnit], str] = {
    ("input_token", "cached_input_token"): "greatest(input_tokens - cached_tokens, 0)",
    ("output_token", "reasoning_token"): "greatest(output_tokens - reasoning_tokens, 0)",
}
"""What is left of a whole where a part of it has a price of its own."""


class Binds:
    """The arguments of a statement: what comes from a draft as text never stands in the statement itself."""

    def __init__(self, *values: Any) -> None:
        self.values: list[Any] = list(values)

    def add(self, value: Any, kind: str) -> str:
        """Take an argument; answers how the statement names it. Text is cast where `kind` is another type."""
        self.values.append(value)
        return f"${len(self.values)}::{kind}"


def attos(components: Sequence[PriceComponent], binds: Binds) -> str:
    """Write the sum of a row's lines; null where a unit has no price for it, or nothing has a price at all.

    The row has `began` (1 where a price per request counts), `traits` (jsonb or null) and the units.
    """
    units = list(dict.fromkeys(part.unit for part in components))
    lines = [_line(unit, [part for part in components if part.unit == unit], units, binds) for unit in units]
    return f"({' + '.join(lines)})" if lines else "null::numeric"


class Grains(msgspec.Struct, frozen=True):
    """The same sum as a bigint, in grains of as many attos as divide all of a price: exact, and faster by half.

    Only for rows whose quantities are below a bound, beyond which a bigint might not hold it; numeric counts others.
    """

    fits: str
    total: str
    nanos: str
    """Of the column `grains`, rounded half to even."""


def grains(components: Sequence[PriceComponent], minimum_nanos: int, binds: Binds) -> Grains | None:
    """Write the sum of a row's lines in grains; None for a price that has none."""
    units = list(dict.fromkeys(part.unit for part in components))
    least = minimum_nanos * ATTOS_PER_NANO
    grain = math.gcd(least, *(part.picos * ATTOS[part.unit] for part in components))
    if not grain:
        return None
    shared = math.gcd(grain, ATTOS_PER_NANO)
    up, down = grain // shared, ATTOS_PER_NANO // shared
    lines, dearest = [], 0
    for unit in units:
        rows = [part for part in components if part.unit == unit]
        dearest += max(part.picos * ATTOS[unit] for part in rows) // grain
        rate = _rate(rows, lambda part: f"{part.picos * ATTOS[part.unit] // grain}::bigint", binds)
        lines.append(f"{rate} * {_quantity(unit, units)}")
    bound = MOST_EXACT // (max(dearest, 1) * up)
    if bound < 1 or least // grain * up > MOST_EXACT or max(dearest, least // grain, up) > MOST_EXACT:
        return None
    counted = f"(case when began = 1 and grains < {least // grain} then {least // grain} else grains end * {up})"
    half = f"({counted} % {down}) * 2 > {down} or ({counted} % {down}) * 2 = {down} and {counted} / {down} % 2 = 1"
    return Grains(
        fits=f"greatest({', '.join(_quantity(unit, units) for unit in units)}) < {bound}",
        total=" + ".join(lines),
        nanos=counted if down == 1 else f"({counted} / {down} + case when {half} then 1 else 0 end)",
    )


def minimum_attos(minimum_nanos: int) -> str:
    """Write the least that a request costs where it is charged at all."""
    return f"{minimum_nanos * ATTOS_PER_NANO}::numeric"


def _line(unit: PricedUnit, rows: Sequence[PriceComponent], units: Sequence[PricedUnit], binds: Binds) -> str:
    rate = _rate(rows, lambda part: f"{part.picos * ATTOS[unit]}::numeric", binds)
    return f"{rate} * {_quantity(unit, units)}"


def _quantity(unit: PricedUnit, units: Sequence[PricedUnit]) -> str:
    rest = next((text for (whole, part), text in _REST.items() if whole == unit and part in units), None)
    return rest or _QUANTITY[unit]


def _rate(rows: Sequence[PriceComponent], written: Callable[[PriceComponent], str], binds: Binds) -> str:
    """Write the rate of one measured quantity: of the rows of a unit the first whose conditions hold."""
    cases, otherwise = [], "null"
    for row in rows:
        if not row.when:
            otherwise = written(row)
            break
        holds = " and ".join(_holds(condition, binds) for condition in row.when)
        cases.append(f"when {holds} then {written(row)}")
    return f"(case {' '.join(cases)} else {otherwise} end)" if cases else otherwise


def _holds(condition: Condition, binds: Binds) -> str:
    """Write one condition: never true where the row does not have the trait."""
    name = binds.add(condition.parameter, "text")
    value = f"traits -> {name}"
    if condition.values:
        wanted = [binds.add(msgspec.json.encode(each).decode(), "text::jsonb") for each in condition.values]
        return f"coalesce({value} in ({', '.join(wanted)}), false)"
    tests = [
        f"(traits ->> {name})::numeric {sign} {binds.add(str(Decimal(str(bound))), 'text::numeric')}"
        for sign, bound in ((">=", condition.least), ("<", condition.below))
        if bound is not None
    ]
    # a case, since the order in which the sides of an `and` are looked at is not promised
    return f"case when jsonb_typeof({value}) = 'number' then {' and '.join(tests) or 'true'} else false end"


def mode(policy: OutcomePolicy) -> str:
    """Write by which rule an outcome is charged: nothing, rated, or all that was held."""
    cases = [
        f"when {OUTCOMES.index(outcome)} then {MODES[getattr(policy, outcome)]}"
        for outcome in OUTCOMES
        if outcome != "succeeded"
    ]
    return f"(case outcome {' '.join(cases)} else {MODES['produced']} end)"


def nanos(ppm: str) -> str:
    """Write the columns `attos`, `minimum` and `began` less a discount as nanos, not rounded yet: exact so far."""
    charged = "case when began = 1 and attos < minimum then minimum else attos end"
    return f"({charged}) * (1000000 - {ppm}) * 0.000000000000001"


def rounded(exact: str, nearest: str) -> str:
    """Write the one rounding, half to even, of `exact`, with `nearest` its rounding half away from zero."""
    return f"({nearest} - case when {nearest} - {exact} = 0.5 and mod({nearest}, 2) = 1 then 1 else 0 end)"
