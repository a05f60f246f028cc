"""Prices as people and programs write them: `{"usd": "0.10", "per": "1M input tokens", "when": {...}}`, and back."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.catalog.prices import component, parse_per, per_text, row_text, usd_of_row
from gateway.catalog.when import read_when
from gateway.errors import Unprocessable
from gateway.money import parse_usd
from gateway.pricing.conditions import when_plain
from gateway.pricing.price import PriceComponent

MOST_ROWS = 200


class RowText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A price row: an exact decimal of US dollars, what it is for, and for which requests it counts."""

    usd: str
    per: str = "request"
    when: dict[str, Any] = {}


class RowView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A price row as it is told."""

    unit: str
    usd: str
    per: str
    text: str
    when: dict[str, Any] = {}


def rows_of(rows: Sequence[RowText]) -> tuple[PriceComponent, ...]:
    """Read price rows. Raises Unprocessable, whose `param` is the first wrong field and whose details name all."""
    found: list[PriceComponent] = []
    problems: list[dict[str, str]] = []
    for number, row in enumerate(rows):
        try:
            found.append(_row(row))
        except _Wrong as wrong:
            problems.append({"field": f"price[{number}].{wrong.field}", "expected": str(wrong), "found": wrong.found})
    if problems:
        error = Unprocessable(
            "; ".join(f"{each['field']}: expected {each['expected']}, found {each['found']}" for each in problems),
            code="price_misfit",
            param=problems[0]["field"],
        )
        error.details = {"problems": problems}
        raise error
    return tuple(found)


def minimum_of(usd: str | None) -> int:
    """Read a minimum in US dollars as nanos; nothing is none. Raises Unprocessable."""
    try:
        return parse_usd(usd) if usd else 0
    except ValueError as error:
        raise Unprocessable(f"minimum_usd: {error}.", code="price_misfit", param="minimum_usd") from None


def row_views(rows: Sequence[PriceComponent]) -> list[RowView]:
    """Write price rows."""
    return [
        RowView(unit=row.unit, usd=usd_of_row(row), per=per_text(row), text=row_text(row), when=when_plain(row.when))
        for row in rows
    ]


class _Wrong(ValueError):
    def __init__(self, field: str, expected: str, found: str) -> None:
        super().__init__(expected)
        self.field = field
        self.found = found


def _row(row: RowText) -> PriceComponent:
    try:
        unit, count = parse_per(row.per)
    except ValueError as error:
        raise _Wrong("per", str(error), repr(row.per[:64])) from None
    try:
        when = read_when(row.when or None)
    except ValueError as error:
        raise _Wrong("when", str(error), msgspec.json.encode(row.when).decode()[:200]) from None
    try:
        return component(row.usd, unit, count, when)
    except ValueError as error:
        raise _Wrong("usd", "a decimal of US dollars, zero or more, such as 0.10", str(error)) from None
