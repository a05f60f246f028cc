"""Money: integers only, and the one rounding rule.

An amount is a count of nanos (1e-9 US dollars). A price is a count of picos (1e-12 US dollars) per
unit. Price lines are summed exactly, in attos (1e-18 US dollars), and rounded once, half to even.
"""

import re
from decimal import Context, Decimal
from functools import lru_cache

NANOS_PER_USD = 10**9
PICOS_PER_USD = 10**12
ATTOS_PER_PICO = 10**6
ATTOS_PER_NANO = 10**9
MAX_NANOS = 2**63 - 1


def round_attos(attos: int, parts: int = 1) -> int:
    """Round an exact sum in attos, or in that many parts of an atto, to nanos, half to even.

    The only place where money is rounded.
    """
    whole = ATTOS_PER_NANO * parts
    nanos, rest = divmod(attos, whole)
    half = whole // 2
    return nanos + (rest > half or (rest == half and nanos & 1))


_AMOUNT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MOST_TEXT = 64
_EXACT = Context(prec=2 * _MOST_TEXT)
"""More digits than an accepted text can have: scaling never rounds."""


def _whole(text: str, per_usd: int, finest: str) -> int:
    written = text.strip()
    if len(written) > _MOST_TEXT or not _AMOUNT.fullmatch(written):
        raise ValueError(f"{text[:_MOST_TEXT]!r} is not a decimal number of US dollars")
    value = Decimal(written)
    if value < 0:
        raise ValueError(f"{text!r} is less than nothing")
    if value.adjusted() > 12:
        raise ValueError(f"{text!r} is more than money is counted here")
    whole = value.scaleb(len(str(per_usd)) - 1, _EXACT)
    if whole != whole.to_integral_value(context=_EXACT):
        raise ValueError(f"{text!r} is finer than {finest}")
    return int(whole)


def parse_usd(text: str) -> int:
    """Read a decimal of US dollars as nanos. Raises ValueError when it is negative, not finite, or finer than 1e-9."""
    nanos = _whole(text, NANOS_PER_USD, "a billionth of a dollar")
    if nanos > MAX_NANOS:
        raise ValueError(f"{text!r} is more than money is counted here")
    return nanos


def parse_price(text: str) -> int:
    """Read a decimal price of US dollars as picos. Raises ValueError: negative, not finite, or finer than 1e-12."""
    return _whole(text, PICOS_PER_USD, "a trillionth of a dollar")


def decimal_text(whole: int, places: int) -> str:
    """Write `whole` * 10**-places as an exact decimal, without trailing zeros."""
    sign = "-" if whole < 0 else ""
    digits = str(abs(whole)).rjust(places + 1, "0")
    head, tail = digits[:-places], digits[-places:].rstrip("0")
    return f"{sign}{head}.{tail}" if tail else f"{sign}{head}"


@lru_cache(maxsize=4096)
def usd_text(nanos: int) -> str:
    """Write nanos as an exact decimal of US dollars, without trailing zeros."""
    return decimal_text(nanos, 9)


def price_text(picos: int) -> str:
    """Write picos as an exact decimal of US dollars, without trailing zeros."""
    return decimal_text(picos, 12)


def attos_text(attos: int) -> str:
    """Write attos as an exact decimal of US dollars, without trailing zeros."""
    return decimal_text(attos, 18)
