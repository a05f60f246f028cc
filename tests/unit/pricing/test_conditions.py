"""Conditions, the minimum and the discount: which row counts, what is refused, and one rounding of everything."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.catalog.codec import components_json, read_components
from gateway.catalog.model import Model, Parameter
from gateway.contract.inputs import ImageInput, ImageToVideoInput, Input, Media, MusicInput, SpeechInput, VideoInput
from gateway.contract.states import OUTCOMES, Outcome
from gateway.contract.units import UNIT_NAMES, Units
from gateway.errors import Unprocessable
from gateway.money import parse_price, parse_usd
from gateway.pricing.conditions import Condition, Trait
from gateway.pricing.lines import price_lines
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PRICED_UNITS, PriceComponent, PricedUnit, PriceVersion
from gateway.pricing.quote import ceiling
from gateway.pricing.rate import charge_nanos, rate_nanos
from gateway.pricing.rows import NotSold
from gateway.pricing.terms import NO_TERMS, Terms, read_terms, terms_json
from gateway.pricing.traits import traits_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HD = Condition("quality", values=("hd", "high"))
LONG = Condition("seconds", least=5, below=10)


def row(unit: PricedUnit, usd: str, *when: Condition) -> PriceComponent:
    return PriceComponent(unit, parse_price(usd), when)


def version(*rows: PriceComponent, minimum: str = "0", number: int = 1) -> PriceVersion:
    return PriceVersion(number, 1, rows, NOW, minimum_nanos=parse_usd(minimum))


def model(price: PriceVersion, **fields: Any) -> Model:
    plain = {"name": "m", "tasks": ("text-to-video",), "description": "", "routes": (), "price": price}
    return Model(**{**plain, **fields})


@pytest.mark.parametrize(
    ("traits", "usd"),
    [
        ({"quality": "hd"}, "3"),
        ({"quality": "high", "seconds": 7}, "3"),
        ({"seconds": 5}, "2"),
        ({"seconds": 9.99}, "2"),
        ({"seconds": 10}, "1"),
        ({"seconds": "7"}, "1"),
        ({"quality": "low"}, "1"),
        ({}, "1"),
    ],
)
def test_the_first_row_that_holds_counts(traits: dict[str, Trait], usd: str) -> None:
    price = version(row("request", "3", HD), row("request", "2", LONG), row("request", "1"))
    assert rate_nanos(price, Units(), terms=Terms(traits=traits)) == parse_usd(usd)


def test_all_conditions_of_a_row_must_hold() -> None:
    price = version(row("request", "3", HD, LONG), row("request", "1"))
    assert rate_nanos(price, Units(), terms=Terms(traits={"quality": "hd", "seconds": 2})) == parse_usd("1")
    assert rate_nanos(price, Units(), terms=Terms(traits={"quality": "hd", "seconds": 6})) == parse_usd("3")


def test_a_unit_with_conditional_rows_alone_is_not_sold_beside_them() -> None:
    price = version(row("request", "1"), row("image", "3", HD))
    with pytest.raises(NotSold, match="no price per image for quality low"):
        rate_nanos(price, Units(images=1), terms=Terms(traits={"quality": "low"}))


def test_such_a_request_is_refused_with_what_is_sold() -> None:
    quality = Parameter(type="string", choices=("low", "hd"), priced=True)
    sold = model(version(row("image", "3", HD)), tasks=("text-to-image",), parameters={"quality": quality})
    with pytest.raises(Unprocessable, match=r"no price for quality low\. It is sold for quality hd or high") as refusal:
        ceiling(sold, ImageInput(prompt="a", quality="low"))
    assert (refusal.value.code, refusal.value.param) == ("not_priced", "quality")
    assert ceiling(sold, ImageInput(prompt="a", quality="hd", n=2)).nanos == parse_usd("6")


def test_the_traits_of_an_input_are_those_that_prices_may_look_at() -> None:
    video = VideoInput(prompt="a", size="1280x720", seconds=5.0, extra={"resolution": "720p", "sound": True})
    assert traits_of(("resolution", "sound", "style"), video) == {
        "width": 1280,
        "height": 720,
        "seconds": 5,
        "resolution": "720p",
        "sound": True,
    }
    picture = Media(blob="b", media_type="image/png", size_bytes=1, width=640, height=480)
    assert traits_of((), ImageToVideoInput(image=picture, frames=40, fps=16)) == {
        "width": 640,
        "height": 480,
        "seconds": 2.5,
    }
    assert traits_of((), MusicInput(prompt="a", seconds=12)) == {"seconds": 12}
    assert traits_of(("voice",), SpeechInput(input="a", voice="ann")) == {"voice": "ann"}


def test_traits_and_discount_come_back_from_postgres() -> None:
    terms = Terms(traits={"seconds": 2.5, "sound": True, "n": 3}, discount_ppm=5, others={7: {"seconds": 3}})
    text = terms_json(terms)
    assert text is not None
    assert read_terms(text) == terms
    assert terms.traits_at(7) == {"seconds": 3}
    assert terms.traits_at(1) == terms.traits
    assert terms_json(NO_TERMS) is None


def test_components_come_back_from_postgres() -> None:
    rows = (row("image", "3", HD), row("image", "2", LONG), row("image", "0"))
    stored = msgspec.json.decode(msgspec.json.encode(components_json(rows)))
    assert stored[2] == {"unit": "image", "picos": 0}
    assert stored[0]["when"] == [{"parameter": "quality", "is": ["hd", "high"]}]
    assert read_components(stored) == rows


@pytest.mark.parametrize(
    ("outcome", "began", "usd"),
    [("succeeded", False, "0.5"), ("cancelled", True, "0.5"), ("cancelled", False, "0"), ("failed", True, "0")],
)
def test_the_minimum_is_charged_where_anything_is(outcome: Outcome, began: bool, usd: str) -> None:
    price = version(row("image", "0.1"), minimum="0.5")
    assert charge_nanos(price, Units(), outcome, OutcomePolicy(), began) == parse_usd(usd)


def test_more_than_the_minimum_costs_no_more_for_it() -> None:
    assert rate_nanos(version(row("image", "0.1"), minimum="0.5"), Units(images=7)) == parse_usd("0.7")


def test_minimum_and_discount_are_lines_of_their_own() -> None:
    price = version(row("image", "0.1", HD), row("image", "0.05"), minimum="0.5")
    lines = price_lines(price, Units(images=2), terms=Terms(traits={"quality": "hd"}, discount_ppm=100_000))
    assert msgspec.to_builtins(list(lines)) == [
        {
            "unit": "image",
            "quantity": "2",
            "price_usd": "0.1",
            "amount_usd": "0.2",
            "when": {"quality": ["hd", "high"]},
        },
        {"unit": "minimum", "quantity": "1", "price_usd": "0.3", "amount_usd": "0.3"},
        {"unit": "discount", "quantity": "0.1", "price_usd": "-0.5", "amount_usd": "-0.05"},
    ]


NAMES = ("quality", "seconds")
values = st.sampled_from(("low", "hd", 3, 5, 7.5, True))
conditions = st.builds(
    Condition, st.sampled_from(NAMES), st.lists(values, min_size=1, max_size=2).map(tuple)
) | st.builds(
    Condition, st.sampled_from(NAMES), st.just(()), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)
)
rows = st.builds(
    PriceComponent,
    st.sampled_from(PRICED_UNITS),
    st.integers(0, 10**13),
    st.lists(conditions, max_size=2).map(tuple),
)
prices = st.builds(
    lambda parts, minimum: PriceVersion(1, 1, tuple(parts), NOW, minimum_nanos=minimum),
    st.lists(rows, max_size=8),
    st.sampled_from((0, 1, 123_456_789)),
)
traits = st.dictionaries(st.sampled_from(NAMES), values)
terms = st.builds(Terms, traits, st.integers(0, 1_000_000))
units = st.builds(Units, **{name: st.integers(0, 10**9) for name in UNIT_NAMES})


@settings(max_examples=400)
@given(prices, units, terms)
def test_the_lines_sum_exactly_to_what_is_rounded_once(price: PriceVersion, measured: Units, under: Terms) -> None:
    """The charge is the nearest nano to the sum of all lines, minimum and discount among them."""
    try:
        lines = price_lines(price, measured, terms=under)
    except NotSold:
        with pytest.raises(NotSold):
            rate_nanos(price, measured, terms=under)
        return
    for line in lines:
        assert Fraction(line.quantity) * Fraction(line.price_usd) == Fraction(line.amount_usd)
    exact = sum((Fraction(line.amount_usd) for line in lines), Fraction(0)) * 10**9
    assert rate_nanos(price, measured, terms=under) == max(0, round(exact))


@st.composite
def films(draw: st.DrawFn) -> tuple[Model, Input, Units]:
    """A model with any price, an input, and units that an engine may measure within its bounds."""
    shown = {
        "quality": Parameter(type="string", priced=True),
        "seconds": Parameter(type="number", priced=True),
    }
    parts = draw(prices)
    sold = tuple(part for part in parts.components if part.unit in ("request", "step", "megapixel", "video_second"))
    entry = model(msgspec.structs.replace(parts, components=sold), parameters=shown)
    quality = draw(st.sampled_from(("low", "hd", None)))
    value = VideoInput(
        prompt="a",
        size="128x64",
        seconds=draw(st.sampled_from((None, 3.0, 5.0, 7.5))),
        extra={"quality": quality} if quality else None,
    )
    length_ms = draw(st.integers(0, 3000))
    return (
        entry,
        value,
        Units(pixels=draw(st.integers(0, 128 * 64 * 48)), steps=draw(st.integers(0, 30)), video_ms=length_ms),
    )


@settings(max_examples=500)
@given(films(), st.sampled_from(OUTCOMES), st.booleans(), st.integers(0, 1_000_000))
def test_no_charge_is_above_its_ceiling(
    case: tuple[Model, Input, Units], outcome: Outcome, began: bool, discount_ppm: int
) -> None:
    """Whatever the conditions, the minimum and the discount, under the terms that the ceiling was computed under."""
    entry, value, measured = case
    assert entry.price is not None
    try:
        most = ceiling(entry, value, discount_ppm=discount_ppm)
    except Unprocessable:
        return
    policy = OutcomePolicy(failed="produced")
    charge = charge_nanos(entry.price, measured, outcome, policy, began, read_terms(terms_json(most.terms)))
    assert 0 <= charge <= most.nanos
