"""Rating: exact lines, one rounding, and what each outcome costs."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.contract.units import UNIT_NAMES, Units
from gateway.money import NANOS_PER_USD, attos_text, parse_price, parse_usd
from gateway.pricing.lines import price_lines
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PRICED_UNITS, PriceComponent, PricedUnit, PriceVersion
from gateway.pricing.rate import ATTOS, WHOLE_HOLD, charge_nanos, rate_nanos


def price_of(**usd: str) -> PriceVersion:
    parts = tuple(PriceComponent(unit, parse_price(usd[unit])) for unit in PRICED_UNITS if unit in usd)
    return PriceVersion(1, 1, parts, datetime(2026, 1, 1, tzinfo=UTC))


prices = st.dictionaries(st.sampled_from(PRICED_UNITS), st.integers(0, 10**15), max_size=len(PRICED_UNITS)).map(
    lambda picos: PriceVersion(
        1, 1, tuple(PriceComponent(unit, amount) for unit, amount in picos.items()), datetime(2026, 1, 1, tzinfo=UTC)
    )
)
units = st.builds(Units, **{name: st.integers(0, 10**9) for name in UNIT_NAMES})


def test_a_million_requests_at_a_millionth_of_a_dollar_are_one_dollar() -> None:
    price = price_of(request="0.000001")
    assert sum(rate_nanos(price, Units()) for _ in range(1_000_000)) == NANOS_PER_USD


def test_a_million_tokens_at_a_millionth_of_a_dollar_are_one_dollar() -> None:
    assert rate_nanos(price_of(input_token="0.000001"), Units(input_tokens=1_000_000)) == NANOS_PER_USD


@pytest.mark.parametrize(("halves", "nanos"), [(1, 0), (2, 1), (3, 2), (5, 2), (7, 4)])
def test_half_a_nano_is_rounded_to_even(halves: int, nanos: int) -> None:
    assert rate_nanos(price_of(output_token="0.0000000005"), Units(output_tokens=halves)) == nanos


def test_lines_are_summed_before_the_one_rounding() -> None:
    """Three lines of four tenths of a nano are 1.2 nanos, rounded 1; rounding each line would give 0."""
    price = price_of(input_token="0.0000000004", output_token="0.0000000004", character="0.0000000004")
    assert rate_nanos(price, Units(input_tokens=1, output_tokens=1, characters=1)) == 1


@given(prices, units)
def test_a_rating_is_the_exact_sum_rounded_once(price: PriceVersion, measured: Units) -> None:
    exact = sum((Fraction(line.amount_usd) for line in price_lines(price, measured)), Fraction(0)) * NANOS_PER_USD
    assert rate_nanos(price, measured) == round(exact)  # Python's round of a Fraction is half to even


@given(prices, units)
def test_lines_say_quantity_times_price_exactly(price: PriceVersion, measured: Units) -> None:
    for line in price_lines(price, measured):
        assert Fraction(line.quantity) * Fraction(line.price_usd) == Fraction(line.amount_usd)


@given(prices, units, st.sampled_from(UNIT_NAMES), st.integers(0, 10**6))
def test_more_of_anything_never_costs_less_but_for_what_is_a_part(
    price: PriceVersion, measured: Units, name: str, more: int
) -> None:
    """Cached and reasoning tokens move within input and output; everything else only adds."""
    if name in ("cached_tokens", "reasoning_tokens"):
        return
    larger = Units(**{each: getattr(measured, each) + (more if each == name else 0) for each in UNIT_NAMES})
    assert rate_nanos(price, larger) >= rate_nanos(price, measured) >= 0


def test_cached_tokens_have_their_own_price_where_there_is_one() -> None:
    measured = Units(input_tokens=100, cached_tokens=60)
    assert rate_nanos(price_of(input_token="1"), measured) == 100 * NANOS_PER_USD
    assert rate_nanos(price_of(input_token="1", cached_input_token="0.5"), measured) == 70 * NANOS_PER_USD


def test_reasoning_tokens_have_their_own_price_where_there_is_one() -> None:
    measured = Units(output_tokens=100, reasoning_tokens=40)
    assert rate_nanos(price_of(output_token="1"), measured) == 100 * NANOS_PER_USD
    assert rate_nanos(price_of(output_token="1", reasoning_token="2"), measured) == 140 * NANOS_PER_USD


def test_an_engine_that_claims_more_cached_than_read_is_not_believed() -> None:
    measured = Units(input_tokens=10, cached_tokens=1000)
    assert rate_nanos(price_of(input_token="1", cached_input_token="0.5"), measured) == 5 * NANOS_PER_USD


@pytest.mark.parametrize(
    ("unit", "measured", "usd"),
    [
        ("megapixel", Units(pixels=1_048_576), "1.048576"),
        ("audio_second", Units(audio_ms=1_500), "1.5"),
        ("video_second", Units(video_ms=1), "0.001"),
        ("image", Units(images=3), "3"),
        ("step", Units(steps=4), "4"),
    ],
)
def test_pixels_and_milliseconds_are_exact(unit: PricedUnit, measured: Units, usd: str) -> None:
    assert rate_nanos(price_of(**{unit: "1"}), measured) == parse_usd(usd)


def test_every_priced_unit_has_a_scale() -> None:
    assert set(ATTOS) == set(PRICED_UNITS)


TOKENS = price_of(request="1", output_token="0.1")
PRODUCED = Units(output_tokens=5)


@pytest.mark.parametrize(
    ("outcome", "when", "began", "usd"),
    [
        ("failed", "nothing", True, "0"),
        ("failed", "produced", True, "1.5"),
        ("cancelled", "produced", True, "1.5"),
        ("cancelled", "produced", False, "0.5"),
        ("expired", "produced", False, "0.5"),
        ("expired", "nothing", True, "0"),
    ],
)
def test_an_outcome_costs_what_the_policy_says(outcome: str, when: str, began: bool, usd: str) -> None:
    """A price per request is due once, and only if the forward phase had begun."""
    policy = OutcomePolicy(**{outcome: when})
    assert charge_nanos(TOKENS, PRODUCED, outcome, policy, began) == parse_usd(usd)


def test_a_success_is_charged_whatever_the_policy() -> None:
    policy = OutcomePolicy(failed="nothing", cancelled="nothing", expired="nothing")
    assert charge_nanos(TOKENS, PRODUCED, "succeeded", policy, False) == parse_usd("1.5")


def test_full_is_all_that_was_held() -> None:
    """Settlement caps every charge at the hold, so the largest amount stands for all of it."""
    assert charge_nanos(TOKENS, Units(), "cancelled", OutcomePolicy(cancelled="full"), False) == WHOLE_HOLD


def test_a_request_that_never_ran_costs_nothing_by_default() -> None:
    assert charge_nanos(TOKENS, Units(), "cancelled", OutcomePolicy(), False) == 0


@pytest.mark.parametrize("text", ["-1", "NaN", "inf", "1e400", "1_000", "٣", "", "1e-13", "0.1" + "0" * 20 + "1", "$1"])
def test_what_is_no_price_is_refused(text: str) -> None:
    """Negative, not finite, finer than a trillionth, or not plain ASCII decimals: never read as something else."""
    with pytest.raises(ValueError, match="is "):
        parse_price(text)


@given(st.integers(0, 10**24))
def test_attos_are_written_exactly(attos: int) -> None:
    assert Fraction(attos_text(attos)) * 10**18 == attos
