"""From messages to what a chat template gets."""

from collections.abc import Sequence
from typing import Any

from gateway.contract.inputs.text import ContentPart, Message, TextPart, Tool
from workers.engine import RefusedInput


def conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Write messages as chat templates expect them. What SDKs merely send back from an answer is left out."""
    return [_turn(message) for message in messages]


def _turn(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": _text(message.content)}
    if message.name is not None:
        turn["name"] = message.name
    if message.tool_call_id is not None:
        turn["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments or "{}"},
            }
            for call in message.tool_calls
        ]
    return turn


def _text(content: str | list[ContentPart] | None) -> str | list[dict[str, str]]:
    if not isinstance(content, list):
        return content or ""
    if not all(isinstance(part, TextPart) for part in content):
        raise RefusedInput("This model reads text only.")
    return [{"type": "text", "text": part.text} for part in content if isinstance(part, TextPart)]


def tool_list(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Write tools as chat templates expect them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.function.name,
                "description": tool.function.description or "",
                "parameters": tool.function.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]
