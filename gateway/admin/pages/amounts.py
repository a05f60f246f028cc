"""Amounts, counts and shares as they are typed into forms."""

import re

from gateway.errors import InvalidRequest
from gateway.money import decimal_text, parse_usd
from gateway.pricing.terms import WHOLE_PPM

_PERCENT = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,4}))?")


def read_usd(text: str, name: str, *, signed: bool = False) -> int:
    """Read a decimal of US dollars as nanos: `12.50`, `$12.50`, `1,204.50`. Raises InvalidRequest naming the field."""
    plain = text.strip().replace(",", "")
    minus = plain.startswith("-")
    try:
        nanos = parse_usd(plain.removeprefix("-").strip().removeprefix("$"))
    except ValueError as error:
        raise InvalidRequest(f"An amount in US dollars, such as 12.50: {error}.", param=name) from None
    if minus and not signed:
        raise InvalidRequest("An amount here is not below zero.", param=name)
    return -nanos if minus else nanos


def read_optional_usd(text: str, name: str) -> int | None:
    """Read an amount that may be left out."""
    return read_usd(text, name) if text.strip() else None


def read_count(text: str, name: str, *, least: int = 1, most: int = 10**9) -> int:
    """Read a whole number. Raises InvalidRequest naming the field."""
    plain = text.strip().replace(",", "")
    if not plain.isascii() or not plain.isdigit() or len(plain) > 18 or not least <= int(plain) <= most:
        raise InvalidRequest(f"A whole number from {least:,} to {most:,}.", param=name)
    return int(plain)


def read_optional_count(text: str, name: str) -> int | None:
    """Read a whole number that may be left out."""
    return read_count(text, name) if text.strip() else None


def read_percent(text: str, name: str) -> int:
    """Read a share in percent as millionths: `12.5`, `12.5%`; nothing is none. Raises InvalidRequest."""
    plain = text.strip().removesuffix("%").strip() or "0"
    match = _PERCENT.fullmatch(plain)
    if match is None:
        raise InvalidRequest("Percent, such as 12.5, to four decimal places.", param=name)
    ppm = int(match[1] + (match[2] or "").ljust(4, "0"))
    if ppm > WHOLE_PPM:
        raise InvalidRequest("A share is 100% at most.", param=name)
    return ppm


def percent_text(ppm: int) -> str:
    """Write millionths as percent, exactly: `12.5`."""
    return decimal_text(ppm, 4)
