"""The `usage` object of text and embedding answers."""

from typing import Any

from gateway.flow.respond import Answer
from gateway.http.answers import money_fields


def text_usage(answer: Answer) -> dict[str, Any]:
    """Tell tokens and charge as chat and completion answers do."""
    units = answer.units
    return {
        "prompt_tokens": units.input_tokens,
        "completion_tokens": units.output_tokens,
        "total_tokens": units.input_tokens + units.output_tokens,
        "prompt_tokens_details": {"cached_tokens": units.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": units.reasoning_tokens},
        **money_fields(answer),
    }
