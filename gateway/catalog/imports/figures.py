"""JSON of others, whose numbers stay the decimals that were written."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

MOST_BYTES = 64 * 1024 * 1024
MOST_DIGITS = 64


class NotReadable(Exception):
    """A file that is no price map of the kind that was named; says what was expected."""


def read(data: bytes) -> Any:
    """Read JSON: numbers with a point or an exponent as decimals, digit by digit. Raises NotReadable."""
    if len(data) > MOST_BYTES:
        raise NotReadable(f"more than {MOST_BYTES} bytes")
    try:
        return json.loads(data, parse_float=_decimal, parse_int=_decimal, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotReadable(f"no JSON: {error}") from None


def amount(value: object) -> Decimal | None:
    """Give a figure, which may stand in quotes; None for what is none."""
    if isinstance(value, str):
        try:
            value = _decimal(value)
        except ValueError:
            return None
    return value if isinstance(value, Decimal) else None


def count(entry: Mapping[str, Any], *names: str) -> int:
    """Give the first of these fields that is a whole number above zero; 0 where none is."""
    for name in names:
        value = amount(entry.get(name))
        if value is not None and 0 < value < 10**9 and value == int(value):
            return int(value)
    return 0


def _decimal(text: str) -> Decimal:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of more than {MOST_DIGITS} characters")
    try:
        found = Decimal(text)
    except ArithmeticError:
        raise ValueError("a number that is none") from None
    if not found.is_finite():
        raise ValueError("a number that is not finite")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number")
