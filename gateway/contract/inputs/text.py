"""The inputs of `chat`, `completion`, `embedding` and `rerank`.

Field names and shapes: OpenAI API reference; `top_k`, `min_p`, `repetition_penalty`, `min_tokens`, `ignore_eos` and
the `regex` and `choice` response formats: vLLM's OpenAI-compatible server; `rerank`: the shape that Cohere, Jina and
vLLM share.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from gateway.contract.inputs.fields import Count, InputStruct, MediaSource, Name, Seed, TaskInput

MAX_OUTPUT_TOKENS = 1_000_000

TokenLimit = Annotated[int, Meta(ge=1, le=MAX_OUTPUT_TOKENS)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Share = Annotated[float, Meta(gt=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
StopText = Annotated[str, Meta(min_length=1, max_length=256)]
Stop = StopText | Annotated[list[StopText], Meta(max_length=16)]


class TextPart(InputStruct, frozen=True, kw_only=True, tag="text", tag_field="type"):
    """A piece of text inside a message."""

    text: str


class ImageUrl(InputStruct, frozen=True, kw_only=True):
    """Where an image of a message is, and how closely it is looked at."""

    url: MediaSource
    detail: Literal["low", "high", "auto"] | None = None


class ImagePart(InputStruct, frozen=True, kw_only=True, tag="image_url", tag_field="type"):
    """An image inside a message."""

    image_url: ImageUrl


class AudioData(InputStruct, frozen=True, kw_only=True):
    """Sound inside a message: from a caller its bytes in base64."""

    data: MediaSource
    format: Literal["wav", "mp3"]


class AudioPart(InputStruct, frozen=True, kw_only=True, tag="input_audio", tag_field="type"):
    """Sound inside a message."""

    input_audio: AudioData


ContentPart = TextPart | ImagePart | AudioPart


class FunctionCall(InputStruct, frozen=True, kw_only=True):
    """The function that an assistant message calls; `arguments` is JSON text."""

    name: Name
    arguments: str = ""


class ToolCall(InputStruct, frozen=True, kw_only=True):
    """A tool call as it stands in an assistant message."""

    id: Name
    function: FunctionCall
    type: Literal["function"] = "function"
    index: int | None = None


class Message(InputStruct, frozen=True, kw_only=True):
    """One message of a conversation.

    The last five fields are what SDKs send back from an answer; engines ignore them.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    name: Name | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: Name | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    annotations: list[Any] | None = None
    audio: None = None
    function_call: None = None


class Function(InputStruct, frozen=True, kw_only=True):
    """A function that the model may call; `parameters` is its JSON schema."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(InputStruct, frozen=True, kw_only=True):
    """A tool that the model may use."""

    function: Function
    type: Literal["function"] = "function"


class NamedFunction(InputStruct, frozen=True, kw_only=True):
    """The name of a function that must be called."""

    name: Name


class NamedTool(InputStruct, frozen=True, kw_only=True):
    """A tool choice that names its function."""

    function: NamedFunction
    type: Literal["function"] = "function"


class JsonSchema(InputStruct, frozen=True, kw_only=True):
    """A named JSON schema for the answer."""

    name: Name = "answer"
    schema: dict[str, Any] = {}
    description: str | None = None
    strict: bool | None = None


class TextFormat(InputStruct, frozen=True, kw_only=True, tag="text", tag_field="type"):
    """Free text."""


class JsonObjectFormat(InputStruct, frozen=True, kw_only=True, tag="json_object", tag_field="type"):
    """Any JSON object."""


class JsonSchemaFormat(InputStruct, frozen=True, kw_only=True, tag="json_schema", tag_field="type"):
    """JSON that fits a schema."""

    json_schema: JsonSchema


class RegexFormat(InputStruct, frozen=True, kw_only=True, tag="regex", tag_field="type"):
    """Text that matches a regular expression."""

    regex: Annotated[str, Meta(min_length=1, max_length=2048)]


class ChoiceFormat(InputStruct, frozen=True, kw_only=True, tag="choice", tag_field="type"):
    """Exactly one of the given texts."""

    choices: Annotated[list[Name], Meta(min_length=1, max_length=256)]


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat | RegexFormat | ChoiceFormat


class Sampling(TaskInput, frozen=True, kw_only=True):
    """How tokens are drawn: what chat and completion share."""

    max_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Meta(ge=-1, le=1_000_000)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    n: Count | None = None
    stop: Stop | None = None
    seed: Seed | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=2)] | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=MAX_OUTPUT_TOKENS)] | None = None
    ignore_eos: bool = False
    response_format: ResponseFormat | None = None


class ChatInput(Sampling, frozen=True, kw_only=True):
    """The input of task `chat`."""

    messages: Annotated[list[Message], Meta(min_length=1, max_length=10_000)]
    max_completion_tokens: TokenLimit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: Annotated[list[Tool], Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None


class CompletionInput(Sampling, frozen=True, kw_only=True):
    """The input of task `completion`."""

    prompt: str
    echo: bool = False
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None


class EmbeddingInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `embedding`: one text or several."""

    input: str | Annotated[list[str], Meta(min_length=1, max_length=2048)]
    dimensions: Annotated[int, Meta(ge=1, le=65_536)] | None = None


MAX_DOCUMENTS = 1_000


class RerankInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `rerank`: texts to be put in order by how well they answer a query."""

    query: Annotated[str, Meta(min_length=1, max_length=100_000)]
    documents: Annotated[list[str], Meta(min_length=1, max_length=MAX_DOCUMENTS)]
    top_n: Annotated[int, Meta(ge=1, le=MAX_DOCUMENTS)] | None = None
    """How many of the best to answer; all where it is left out."""
    return_documents: bool | None = None
