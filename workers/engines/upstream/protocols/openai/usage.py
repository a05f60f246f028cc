"""Tokens and cost that an answer names. What it does not name is estimated and marked so, and never taken for zero."""

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import msgspec

from workers.engines.upstream.counting import estimated_tokens
from workers.engines.upstream.protocol import Call
from workers.engines.upstream.protocols.openai.shapes import Usage, usage_decoder

COST_HEADER = "x-litellm-response-cost"
"""LiteLLM's word for what a call cost, in US dollars."""
NANOS = 1_000_000_000
MOST_COST_USD = 1_000_000
MOST_TOKENS = 100_000_000


def count(call: Call, raw: msgspec.Raw, *, sent_chars: int, came_chars: int, pieces: int = 0) -> None:
    """Count what an answer says it used, else an estimate by the characters that went and came."""
    units = call.run.units
    usage = _read(raw)
    given = usage.prompt_tokens if usage.prompt_tokens is not None else usage.input_tokens
    made = usage.completion_tokens if usage.completion_tokens is not None else usage.output_tokens
    if made is None and given is not None and usage.total_tokens is not None:
        made = usage.total_tokens - given
    call.estimated = False
    if given is not None and _is_count(given) and (given or not sent_chars):
        units.input_tokens = given
        units.cached_tokens = min(given, _part(usage, "prompt_tokens_details", "cached_tokens"))
    else:
        units.input_tokens = estimated_tokens(sent_chars)
        units.cached_tokens = 0
        call.estimated = True
    if made is not None and _is_count(made) and (made or not came_chars):
        units.output_tokens = made
        units.reasoning_tokens = min(made, _part(usage, "completion_tokens_details", "reasoning_tokens"))
    else:
        units.output_tokens = estimated_tokens(came_chars, pieces) if came_chars else 0
        units.reasoning_tokens = 0
        call.estimated = True
    if usage.cost is not None:
        call.cost_nanos = nanos(usage.cost)


def cost_in(headers: Mapping[str, str]) -> int | None:
    """Read a call's cost in nanos from the headers of its answer; None where they name none."""
    try:
        return nanos(Decimal(headers[COST_HEADER]))
    except (KeyError, InvalidOperation):
        return None


def nanos(usd: Decimal) -> int | None:
    """Give dollars as nanos, rounded half to even; None for what is no cost."""
    if not usd.is_finite() or not 0 <= usd <= MOST_COST_USD:
        return None
    return int((usd * NANOS).to_integral_value(ROUND_HALF_EVEN))


def _read(raw: msgspec.Raw) -> Usage:
    """Read a usage; where a part of it cannot be read, nothing of it is believed."""
    try:
        return usage_decoder.decode(raw) if raw and bytes(raw) != b"null" else Usage()
    except msgspec.DecodeError:
        return Usage()


def _is_count(value: int) -> bool:
    return 0 <= value <= MOST_TOKENS


def _part(usage: Usage, details: str, name: str) -> int:
    value = getattr(getattr(usage, details), name, None)
    return value if isinstance(value, int) and value > 0 else 0
