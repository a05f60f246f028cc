"""The items of a response's input as the messages of a chat."""

from collections.abc import Sequence
from typing import TypeVar

from gateway.contract.inputs import ChatInput
from gateway.contract.inputs.text import (
    ContentPart,
    Function,
    FunctionCall,
    ImagePart,
    ImageUrl,
    JsonSchema,
    JsonSchemaFormat,
    Message,
    NamedFunction,
    NamedTool,
    ResponseFormat,
    TextPart,
    Tool,
    ToolCall,
)
from gateway.errors import InvalidRequest
from gateway.http.openai.responses.bodies import (
    FunctionChoice,
    FunctionTool,
    Item,
    Part,
    ResponseBody,
    SchemaFormat,
)

T = TypeVar("T")


def chat_of(body: ResponseBody) -> ChatInput:
    """Read a response's call as a chat. Raises InvalidRequest, whose `param` names the item that makes no sense."""
    choice = body.tool_choice
    return ChatInput(
        messages=_messages(body),
        max_completion_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        logprobs=True if body.top_logprobs is not None or _wants_logprobs(body) else None,
        top_logprobs=body.top_logprobs,
        tools=[_tool(tool) for tool in body.tools] if body.tools else None,
        tool_choice=_named(choice) if isinstance(choice, FunctionChoice) else choice,
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_format(body),
        extra=body.extra,
    )


def _wants_logprobs(body: ResponseBody) -> bool:
    return "message.output_text.logprobs" in (body.include or ())


def _tool(tool: FunctionTool) -> Tool:
    return Tool(
        function=Function(name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict)
    )


def _named(choice: FunctionChoice) -> NamedTool:
    return NamedTool(function=NamedFunction(name=choice.name))


def _format(body: ResponseBody) -> ResponseFormat | None:
    wanted = body.text.format if body.text else None
    if isinstance(wanted, SchemaFormat):
        schema = JsonSchema(
            name=wanted.name, schema=wanted.schema, description=wanted.description, strict=wanted.strict
        )
        return JsonSchemaFormat(json_schema=schema)
    return wanted


def _messages(body: ResponseBody) -> list[Message]:
    messages = [Message(role="system", content=body.instructions)] if body.instructions else []
    if isinstance(body.input, str):
        return [*messages, Message(role="user", content=body.input)]
    calls: list[ToolCall] = []
    for at, item in enumerate(body.input):
        if item.type == "function_call":
            calls.append(_call(item, at))
            continue
        if calls:
            messages.append(Message(role="assistant", tool_calls=calls))
            calls = []
        if item.type == "function_call_output":
            messages.append(
                Message(role="tool", tool_call_id=_given(item.call_id, at, "call_id"), content=_output(item))
            )
        elif item.type == "message":
            messages.append(_message(item, at))
    if calls:
        messages.append(Message(role="assistant", tool_calls=calls))
    return messages


def _message(item: Item, at: int) -> Message:
    content = item.content
    if isinstance(content, list):
        return Message(role=_given(item.role, at, "role"), content=_parts(content, at))
    return Message(role=_given(item.role, at, "role"), content=_given(content, at, "content"))


def _parts(parts: Sequence[Part], at: int) -> list[ContentPart]:
    return [_part(part, f"input[{at}].content[{index}]") for index, part in enumerate(parts)]


def _part(part: Part, param: str) -> ContentPart:
    if part.type == "input_image":
        if part.image_url is None:
            raise InvalidRequest("Give the image as image_url: an address or a data URL.", param=f"{param}.image_url")
        return ImagePart(image_url=ImageUrl(url=part.image_url, detail=part.detail))
    text = part.refusal if part.type == "refusal" else part.text
    if text is None:
        raise InvalidRequest("There is no text.", param=f"{param}.text")
    return TextPart(text=text)


def _call(item: Item, at: int) -> ToolCall:
    function = FunctionCall(name=_given(item.name, at, "name"), arguments=item.arguments or "")
    return ToolCall(id=_given(item.call_id, at, "call_id"), function=function)


def _output(item: Item) -> str:
    if isinstance(item.output, list):
        return "".join(part.text or "" for part in item.output)
    return item.output or ""


def _given(value: T | None, at: int, field: str) -> T:
    if value is None:
        raise InvalidRequest(f"This item needs {field}.", param=f"input[{at}].{field}")
    return value
