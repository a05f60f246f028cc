"""Price rows as people write them: `{usd: 0.10, per: 1M input tokens}`, and back.

Decimals are taken from the text of the scalar and never pass through a float: `usd` divided by the
count in `per` must be a whole number of picodollars (1e-12).
"""

import re

from gateway.catalog.document import Scalar
from gateway.catalog.fields import Fields
from gateway.catalog.model import Sold
from gateway.catalog.when import read_when
from gateway.money import parse_price, parse_usd, price_text
from gateway.pricing.conditions import Condition
from gateway.pricing.price import PriceComponent, PricedUnit

WORDS: dict[str, tuple[PricedUnit, int]] = {
    "request": ("request", 1),
    "input token": ("input_token", 1),
    "cached input token": ("cached_input_token", 1),
    "output token": ("output_token", 1),
    "reasoning token": ("reasoning_token", 1),
    "character": ("character", 1),
    "image": ("image", 1),
    "megapixel": ("megapixel", 1),
    "step": ("step", 1),
    "audio second": ("audio_second", 1),
    "audio minute": ("audio_second", 60),
    "video second": ("video_second", 1),
    "video minute": ("video_second", 60),
}
"""The words of `per`, in the singular, with their unit and how many of it one of them is."""

PRICE_FIELDS = ("usd", "per", "when")
MULTIPLES = {"": 1, "k": 10**3, "m": 10**6}
COUNTS: dict[PricedUnit, int] = {
    "input_token": 10**6,
    "cached_input_token": 10**6,
    "output_token": 10**6,
    "reasoning_token": 10**6,
    "character": 10**6,
}
"""How many units a price row is written for; one where none stands here."""

_PER = re.compile(r"(?:([0-9][0-9_,]*) ?([kKmM]?) )?([a-z]+(?: [a-z]+)*)")
EXAMPLE = "`request` or `1M input tokens`"


def parse_per(text: str) -> tuple[PricedUnit, int]:
    """Read what a price is for: the unit and how many of it. Raises ValueError with what was expected."""
    match = _PER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a count and a unit, such as {EXAMPLE}")
    digits, multiple, word = match.groups()
    known = WORDS.get(word) or WORDS.get(word.removesuffix("s"))
    if known is None:
        raise ValueError(f"one of the units {', '.join(WORDS)}")
    unit, each = known
    count = int(re.sub("[_,]", "", digits or "1")) * MULTIPLES[(multiple or "").lower()] * each
    if not 1 <= count <= 10**12:
        raise ValueError("a count from 1 to 1000000M")
    return unit, count


def component(usd: str, unit: PricedUnit, count: int, when: tuple[Condition, ...] = ()) -> PriceComponent:
    """Make the component of `usd` for each `count` units. Raises ValueError with what is wrong with the amount."""
    picos, rest = divmod(parse_price(usd), count)
    if rest:
        raise ValueError(f"{usd!r} for {count} is finer than a trillionth of a dollar each")
    return PriceComponent(unit, picos, when)


def per_text(part: PriceComponent) -> str:
    """Write what a component's row is for, so that `parse_per` reads it back."""
    word = next(word for word, (unit, each) in WORDS.items() if unit == part.unit and each == 1)
    return f"1M {word}s" if part.unit in COUNTS else word


def usd_of_row(part: PriceComponent) -> str:
    """Write a component's amount for as many units as `per_text` says."""
    return price_text(part.picos * COUNTS.get(part.unit, 1))


def dollars_of_row(part: PriceComponent) -> str:
    """Write a component's amount for people: whole dollars, or at least two decimals."""
    whole, point, decimals = usd_of_row(part).partition(".")
    return f"${whole}{point}{decimals.ljust(2, '0') if point else ''}"


def row_text(part: PriceComponent) -> str:
    """Write a component for people: `$0.10 per 1M input tokens`, `$0.04 per image with quality hd`."""
    return f"{dollars_of_row(part)} per {per_text(part)}{f' with {part.words}' if part.when else ''}"


def read_prices(fields: Fields, name: str) -> tuple[PriceComponent, ...]:
    """Read a list of price rows."""
    found: list[PriceComponent] = []
    for node, path in fields.items(name, "a list of rows such as `- {usd: 0.10, per: 1M input tokens}`"):
        row = fields.of(node, path)
        if row is None:
            continue
        row.known(PRICE_FIELDS)
        part = _price_row(row)
        if part is not None:
            found.append(part)
    return tuple(found)


def read_sold(fields: Fields) -> Sold:
    """Read `price` and `minimum_usd` of a model."""
    return Sold(read_prices(fields, "price"), _minimum(fields))


def _minimum(fields: Fields) -> int:
    node = fields.node("minimum_usd")
    if node is None:
        return 0
    if isinstance(node, Scalar):
        try:
            return parse_usd(node.text)
        except ValueError as error:
            fields.wrong("minimum_usd", "a decimal of US dollars, zero or more, such as 0.001", str(error))
            return 0
    fields.wrong("minimum_usd", "a decimal of US dollars, such as 0.001")
    return 0


def when_of(row: Fields) -> tuple[Condition, ...]:
    """Read the conditions of a row."""
    try:
        return read_when(row.plain("when"))
    except ValueError as error:
        row.wrong("when", str(error))
        return ()


def _price_row(row: Fields) -> PriceComponent | None:
    usd = row.node("usd")
    if not isinstance(usd, Scalar):
        row.wrong("usd", "a decimal of US dollars, such as 0.10")
        return None
    try:
        unit, count = parse_per(row.text("per", "request"))
    except ValueError as error:
        row.wrong("per", str(error))
        return None
    try:
        return component(usd.text, unit, count, when_of(row))
    except ValueError as error:
        row.wrong("usd", "a decimal of US dollars, zero or more, such as 0.10", str(error))
        return None
