"""Pieces of answers and chunks, each an error or left out where it cannot be read."""

from typing import Any

import msgspec

from gateway.contract.events import TokenLogprob, ToolCallDelta
from gateway.contract.states import Reason
from workers.engines.upstream.failures import blocked, clean, is_blocked, unreadable
from workers.engines.upstream.protocol import UpstreamFailed
from workers.engines.upstream.protocols.openai.shapes import AnyAnswer, ToolCall, answer_decoder

MOST_LOGPROBS = 20


def read_answer(data: bytes) -> AnyAnswer:
    """Read an answer or a chunk. Raises UpstreamFailed for one that cannot be read, or tells of an error."""
    try:
        read = answer_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise unreadable("an answer that does not have OpenAI's shape") from None
    if read.error is not None:
        raise told_error(read.error)
    return read


def told_error(error: Any) -> UpstreamFailed:
    """Give the failure that an answer with status 200, or a stream, tells of."""
    words = error.get("message") if isinstance(error, dict) else error
    codes = f"{error.get('code')} {error.get('type')}" if isinstance(error, dict) else ""
    said = words if isinstance(words, str) else ""
    if is_blocked(f"{codes} {said}"):
        return blocked(said)
    limited = "429" in codes or "rate_limit" in codes
    reason: Reason = "upstream_limited" if limited else "upstream_error"
    return UpstreamFailed("The provider failed.", reason=reason, detail=f"an error inside an answer: {clean(said)}")


def tool_calls(calls: list[ToolCall] | None) -> list[ToolCallDelta] | None:
    """Read tool calls, or pieces of them."""
    if not calls:
        return None
    return [
        ToolCallDelta(
            call.index if call.index is not None else place,
            call.id,
            call.function.name if call.function else None,
            arguments_of(call),
        )
        for place, call in enumerate(calls)
    ]


def arguments_of(call: ToolCall) -> str:
    """Give the arguments of a call as JSON text; some servers give the JSON itself."""
    arguments = call.function.arguments if call.function else None
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return msgspec.json.encode(arguments).decode()


def chat_logprobs(found: Any) -> list[TokenLogprob] | None:
    """Read `logprobs.content`; None where there is none, or it cannot be read."""
    rows = found.get("content") if isinstance(found, dict) else None
    try:
        return [
            TokenLogprob(
                row["token"],
                float(row["logprob"]),
                [(top["token"], float(top["logprob"])) for top in (row.get("top_logprobs") or [])[:MOST_LOGPROBS]],
            )
            for row in rows or ()
        ] or None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def completion_logprobs(found: Any) -> list[TokenLogprob] | None:
    """Read the lists of a completion's `logprobs`; None where there are none, or they cannot be read."""
    if not isinstance(found, dict):
        return None
    try:
        tops = found.get("top_logprobs") or [None] * len(found["tokens"])
        return [
            TokenLogprob(token, float(chance or 0.0), [(text, float(value)) for text, value in (top or {}).items()])
            for token, chance, top in zip(found["tokens"], found["token_logprobs"], tops, strict=False)
        ] or None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
