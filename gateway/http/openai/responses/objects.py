"""An answer as a response object. Field names and shapes: OpenAI API reference."""

from typing import Any

import msgspec

from gateway.contract.events import Choice, TextOutput, TokenLogprob, ToolCallDelta
from gateway.flow.respond import Answer
from gateway.http.answers import money_fields
from gateway.http.openai.logprobs import chat_logprobs
from gateway.http.openai.responses.bodies import ResponseBody

Json = dict[str, Any]


def response_object(body: ResponseBody, answer: Answer) -> Json:
    """Write a finished answer."""
    output = answer.output
    choice = output.choices[0] if isinstance(output, TextOutput) and output.choices else Choice("")
    return finished(head(body, answer.id, answer.model, answer.created_s), items_of(answer.id, choice), answer, choice)


def head(body: ResponseBody, request_id: str, model: str, created_s: int) -> Json:
    """Write what is known of a response as it begins: what was asked for, and no output yet."""
    return {
        "id": request_id,
        "object": "response",
        "created_at": created_s,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": model,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": None,
        "store": bool(body.store),
        "temperature": body.temperature,
        "text": msgspec.to_builtins(body.text) if body.text else {"format": {"type": "text"}},
        "tool_choice": msgspec.to_builtins(body.tool_choice) if body.tool_choice else "auto",
        "tools": [msgspec.to_builtins(tool) for tool in body.tools or ()],
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def finished(begun: Json, items: list[Json], answer: Answer, choice: Choice) -> Json:
    """Complete a response with its items and its usage; one that was cut off at its limit is `incomplete`."""
    cut = choice.finish_reason == "length"
    return begun | {
        "model": answer.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": items,
        "usage": usage(answer),
    }


def usage(answer: Answer) -> Json:
    """Tell tokens and charge as responses do."""
    units = answer.units
    return {
        "input_tokens": units.input_tokens,
        "input_tokens_details": {"cached_tokens": units.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": units.output_tokens,
        "output_tokens_details": {"reasoning_tokens": units.reasoning_tokens},
        "total_tokens": units.input_tokens + units.output_tokens,
        **money_fields(answer),
    }


def items_of(request_id: str, choice: Choice) -> list[Json]:
    """Write one choice as items: its reasoning, its message, its calls of functions."""
    items = []
    if choice.reasoning:
        items.append(reasoning_item(request_id, choice.reasoning))
    if choice.text or not choice.tool_calls:
        items.append(message_item(request_id, choice.text, choice.logprobs))
    return [*items, *(call_item(request_id, call) for call in choice.tool_calls or ())]


def item_id(kind: str, request_id: str, index: int = 0) -> str:
    """Name an item: `kind` is `msg`, `rs` or `fc`."""
    return f"{kind}_{request_id.removeprefix('req_')}{index or ''}"


def reasoning_item(request_id: str, text: str, status: str = "completed") -> Json:
    """Write the reasoning."""
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {"id": item_id("rs", request_id), "type": "reasoning", "summary": [], "content": content, "status": status}


def message_item(
    request_id: str, text: str | None, logprobs: list[TokenLogprob] | None = None, status: str = "completed"
) -> Json:
    """Write the message; without text while it only begins."""
    content = [] if text is None else [text_part(text, logprobs)]
    return {
        "id": item_id("msg", request_id),
        "type": "message",
        "role": "assistant",
        "content": content,
        "status": status,
    }


def text_part(text: str, logprobs: list[TokenLogprob] | None = None) -> Json:
    """Write the text of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": token_logprobs(logprobs)}


def token_logprobs(logprobs: list[TokenLogprob] | None) -> list[Json]:
    """Write log-probabilities; none where they were not asked for."""
    content: list[Json] = chat_logprobs(logprobs)["content"] if logprobs else []
    return content


def call_item(request_id: str, call: ToolCallDelta, status: str = "completed") -> Json:
    """Write the call of a function."""
    return {
        "id": item_id("fc", request_id, call.index),
        "type": "function_call",
        "call_id": call.id or "",
        "name": call.name or "",
        "arguments": call.arguments,
        "status": status,
    }
