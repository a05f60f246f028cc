"""What a request cost, line by line, with the one rounding."""

from decimal import Decimal

import msgspec

from gateway.errors import FaregateError
from gateway.money import decimal_text
from gateway.pricing.lines import PriceLine, price_lines
from gateway.reports.request_story import Story

UNIT_WORDS = {
    "request": "request",
    "input_token": "input token",
    "cached_input_token": "cached input token",
    "output_token": "output token",
    "reasoning_token": "reasoning token",
    "character": "character",
    "image": "image",
    "megapixel": "megapixel",
    "step": "step",
    "audio_second": "second of audio",
    "video_second": "second of video",
    "minimum": "rest up to the minimum",
    "discount": "discount of the account",
}


class BillLine(msgspec.Struct, frozen=True, kw_only=True):
    """Units times price is the amount, to the last digit."""

    unit: str
    when: str
    quantity: str
    price_usd: str
    amount_usd: str


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """The way from measured units to the charge."""

    lines: tuple[BillLine, ...]
    exact_usd: str
    """The sum of the lines, not rounded."""
    charge_nanos: int
    is_capped: bool
    """Whether the hold was less than the sum."""
    words: str
    """Why it costs what it costs, where that is not the sum of the lines."""


def bill_of(story: Story) -> Bill | None:
    """Write the bill of a finished request; None while it is open."""
    end = story.end
    if end is None:
        return None
    policy = "produced" if end.outcome == "succeeded" else getattr(story.price.outcome, end.outcome)
    words = {
        "nothing": f"A request that {_past(end.outcome)} costs nothing, as its model declares.",
        "full": f"A request that {_past(end.outcome)} costs all of its hold, as its model declares.",
        "produced": "" if end.outcome == "succeeded" else "What was produced until then is charged.",
    }[policy]
    if policy != "produced":
        return Bill(lines=(), exact_usd="0", charge_nanos=end.charge_nanos, is_capped=False, words=words)
    requests = 1 if end.outcome == "succeeded" or end.forward_began else 0
    try:
        found = price_lines(story.price, end.units, requests, story.terms)
    except FaregateError as error:
        return Bill(lines=(), exact_usd="0", charge_nanos=end.charge_nanos, is_capped=False, words=error.message)
    lines = tuple(
        BillLine(
            unit=UNIT_WORDS[line.unit],
            when=", ".join(f"{name} {_condition(value)}" for name, value in line.when.items()),
            quantity=line.quantity,
            price_usd=line.price_usd,
            amount_usd=line.amount_usd,
        )
        for line in found
        if line.quantity != "0"
    )
    exact = _exact(found)
    return Bill(
        lines=lines,
        exact_usd=exact,
        charge_nanos=end.charge_nanos,
        is_capped=end.charge_nanos == story.hold_nanos and Decimal(exact) * 10**9 > story.hold_nanos + 1,
        words=words,
    )


def _exact(lines: tuple[PriceLine, ...]) -> str:
    """Sum decimal strings exactly, as whole numbers of 1e-24 dollars."""
    return decimal_text(sum([_whole(line.amount_usd) for line in lines]), 24)


def _whole(text: str) -> int:
    whole, _, rest = text.lstrip("-").partition(".")
    number = int(whole + rest.ljust(24, "0"))
    return -number if text.startswith("-") else number


def _past(outcome: str) -> str:
    return {"failed": "failed", "cancelled": "was cancelled", "expired": "expired"}.get(outcome, outcome)


def _condition(value: object) -> str:
    if isinstance(value, dict):
        parts = [
            f"from {value['from']}" if "from" in value else "",
            f"below {value['below']}" if "below" in value else "",
        ]
        return " ".join(part for part in parts if part)
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)
