"""What `POST /v1/responses` takes. Field names and shapes: OpenAI API reference."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.contract.inputs.fields import InputStruct, Name
from gateway.contract.inputs.text import JsonObjectFormat, Share, Temperature, TextFormat, TokenLimit
from gateway.flow.call import Priority
from gateway.http.openai.bodies import MaxPrice, Metadata, ModelName, StreamOptions, Text
from gateway.http.wishes import Fallbacks, Provider


class Part(InputStruct, frozen=True, kw_only=True):
    """A piece of an item's content. `annotations` and `logprobs` are what SDKs send back from an answer."""

    type: Literal["input_text", "output_text", "input_image", "refusal", "reasoning_text"]
    text: str | None = None
    image_url: str | None = None
    detail: Literal["low", "high", "auto"] | None = None
    refusal: str | None = None
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class Item(InputStruct, frozen=True, kw_only=True):
    """One item of an input: a message, a call of a function, what a function gave, or reasoning sent back."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[Part] | None = None
    id: str | None = None
    status: str | None = None
    call_id: Name | None = None
    name: Name | None = None
    arguments: str | None = None
    output: str | list[Part] | None = None
    summary: list[Any] | None = None
    encrypted_content: str | None = None
    phase: str | None = None


class FunctionTool(InputStruct, frozen=True, kw_only=True):
    """A function that the model may call."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionChoice(InputStruct, frozen=True, kw_only=True):
    """The function that must be called."""

    type: Literal["function"]
    name: Name


class SchemaFormat(InputStruct, frozen=True, kw_only=True, tag="json_schema", tag_field="type"):
    """JSON that fits a schema."""

    name: Name = "answer"
    schema: dict[str, Any] = {}
    description: str | None = None
    strict: bool | None = None


class TextOptions(InputStruct, frozen=True, kw_only=True):
    """The form of the text."""

    format: TextFormat | JsonObjectFormat | SchemaFormat | None = None


class ResponseBody(InputStruct, frozen=True, kw_only=True):
    """`POST /v1/responses`. What is not here is refused, as is `previous_response_id`: nothing is remembered."""

    model: ModelName
    input: str | Annotated[list[Item], Meta(min_length=1, max_length=10_000)]
    instructions: str | None = None
    max_output_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: Annotated[list[FunctionTool], Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    include: list[str] | None = None
    truncation: Literal["disabled"] | None = None
    metadata: Metadata | None = None
    store: bool | None = None
    user: Text | None = None
    safety_identifier: Text | None = None
    prompt_cache_key: Text | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None
    extra: dict[str, Any] | None = None


DECODER = msgspec.json.Decoder(ResponseBody)
