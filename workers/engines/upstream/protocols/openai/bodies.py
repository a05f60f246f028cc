"""A text request as it is sent: by allow-list, with defaults written out that other servers do not know."""

from typing import Any

from gateway.contract.inputs import ChatInput, CompletionInput
from gateway.contract.inputs.text import (
    AudioPart,
    ChoiceFormat,
    ContentPart,
    ImagePart,
    JsonSchemaFormat,
    Message,
    NamedTool,
    RegexFormat,
    ResponseFormat,
    TextPart,
    Tool,
    ToolCall,
)
from workers.engine import RefusedInput
from workers.engines.upstream.fields import wire
from workers.engines.upstream.protocol import Call

SAMPLING = (
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "n",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
    "logprobs",
    "top_logprobs",
    "parallel_tool_calls",
    "echo",
)
NAMES = {name: name for name in SAMPLING}
"""The fields of a text input that go as they are; the others are written down below."""


async def text_body(call: Call, given: ChatInput | CompletionInput) -> dict[str, Any]:
    """Give the body of a chat or completion. Raises RefusedInput for a format that is only a local engine's."""
    body: dict[str, Any] = {"model": call.target.model}
    if isinstance(given, ChatInput):
        body["messages"] = [await _message(call, each) for each in given.messages]
        if given.tools:
            body["tools"] = [_tool(each) for each in given.tools]
        if given.tool_choice is not None:
            body["tool_choice"] = _choice(given.tool_choice)
    else:
        body["prompt"] = given.prompt
    if given.response_format is not None:
        body["response_format"] = _format(given.response_format)
    body.update(wire(call, NAMES))
    if given.extra is None and not call.target.fixed:
        return body
    body["model"] = call.target.fixed.get("model", call.target.model)
    return body


async def _message(call: Call, message: Message) -> dict[str, Any]:
    """Write a message down, without what SDKs send back of an answer: some servers refuse it."""
    written: dict[str, Any] = {"role": message.role}
    content = message.content
    written["content"] = [await _part(call, part) for part in content] if isinstance(content, list) else content
    if message.name is not None:
        written["name"] = message.name
    if message.tool_calls:
        written["tool_calls"] = [_tool_call(each) for each in message.tool_calls]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


async def _part(call: Call, part: ContentPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        image: dict[str, Any] = {"url": await call.parcels.data_uri(part.image_url.url)}
        if part.image_url.detail is not None:
            image["detail"] = part.image_url.detail
        return {"type": "image_url", "image_url": image}
    return await _sound(call, part)


async def _sound(call: Call, part: AudioPart) -> dict[str, Any]:
    data = (await call.parcels.data_uri(part.input_audio.data)).partition(",")[2]
    return {"type": "input_audio", "input_audio": {"data": data, "format": part.input_audio.format}}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: Tool) -> dict[str, Any]:
    function = tool.function
    named = {"description": function.description, "parameters": function.parameters, "strict": function.strict}
    written = {"name": function.name} | {name: value for name, value in named.items() if value is not None}
    return {"type": "function", "function": written}


def _choice(choice: str | NamedTool) -> Any:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.function.name}}
    return choice


def _format(wanted: ResponseFormat) -> dict[str, Any]:
    if isinstance(wanted, RegexFormat | ChoiceFormat):
        raise RefusedInput("This model takes no response_format of the types regex and choice.")
    if isinstance(wanted, JsonSchemaFormat):
        schema = wanted.json_schema
        named = {"description": schema.description, "strict": schema.strict}
        written: dict[str, Any] = {"name": schema.name, "schema": schema.schema}
        written |= {name: value for name, value in named.items() if value is not None}
        return {"type": "json_schema", "json_schema": written}
    return {"type": type(wanted).__struct_config__.tag}
