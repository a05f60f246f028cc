"""What answers and chunks hold, as far as it is read. What nobody reads may have any shape."""

from decimal import Decimal
from typing import Any

import msgspec

FINISHES = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "function_call": "tool_calls",
    "max_tokens": "length",
    "model_length": "length",
    "tool_use": "tool_calls",
}
"""Why an answer ended, in OpenAI's words; what some upstreams say instead; anything else is `stop`."""


class Function(msgspec.Struct):
    """The function of a tool call, or a piece of it."""

    name: str | None = None
    arguments: Any = None


class ToolCall(msgspec.Struct):
    """A tool call, or a piece of it."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Said(msgspec.Struct):
    """A message, or the piece of one."""

    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class AnyChoice(msgspec.Struct):
    """A choice of an answer (`message`), of a chunk (`delta`), or of a completion (`text`)."""

    index: int = 0
    message: Said | None = None
    delta: Said | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class AnyAnswer(msgspec.Struct):
    """An answer or a chunk."""

    choices: list[AnyChoice] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"")
    error: Any = None
    id: Any = None


class Details(msgspec.Struct):
    """A part of the tokens."""

    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct):
    """What an upstream counted. `cost` is OpenRouter's, in US dollars."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None
    cost: Decimal | None = None


answer_decoder = msgspec.json.Decoder(AnyAnswer)
usage_decoder = msgspec.json.Decoder(Usage)


def text_of(content: str | list[Any] | None) -> str:
    """Give a message's text: its own, or that of its parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content or ""


def reasoning_of(said: Said) -> str | None:
    """Give what a model thought, under either of its two names."""
    if said.reasoning_content:
        return said.reasoning_content
    return said.reasoning if isinstance(said.reasoning, str) and said.reasoning else None


def finish_of(reason: str | None) -> str:
    """Give why an answer ended, in OpenAI's words."""
    return FINISHES.get(reason or "stop", "stop")
