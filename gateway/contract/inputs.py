"""The input of each task: what its OpenAI call holds beside the model.

One set of types serves every API family and every engine. Unknown fields are refused by name; the
limits here are the absolute ones, a model's catalog entry may set lower ones. Field names and shapes:
OpenAI API reference; `top_k`, `min_p`, `repetition_penalty`, `min_tokens`, `ignore_eos` and the
`regex` and `choice` response formats: vLLM's OpenAI-compatible server.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.contract.tasks import Task

MAX_CHOICES = 16
MAX_OUTPUT_TOKENS = 1_000_000

Count = Annotated[int, Meta(ge=1, le=MAX_CHOICES)]
TokenLimit = Annotated[int, Meta(ge=1, le=MAX_OUTPUT_TOKENS)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Share = Annotated[float, Meta(gt=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
StopText = Annotated[str, Meta(min_length=1, max_length=256)]
Stop = StopText | Annotated[list[StopText], Meta(max_length=16)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]


class _Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all inputs share: frozen, named fields only, nothing unknown."""


class TextPart(_Input, frozen=True, kw_only=True, tag="text", tag_field="type"):
    """A piece of text inside a message."""

    text: str


class FunctionCall(_Input, frozen=True, kw_only=True):
    """The function that an assistant message calls; `arguments` is JSON text."""

    name: Name
    arguments: str = ""


class ToolCall(_Input, frozen=True, kw_only=True):
    """A tool call as it stands in an assistant message."""

    id: Name
    function: FunctionCall
    type: Literal["function"] = "function"
    index: int | None = None


class Message(_Input, frozen=True, kw_only=True):
    """One message of a conversation.

    The last five fields are what SDKs send back from an answer; engines ignore them.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: Name | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: Name | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    annotations: list[Any] | None = None
    audio: None = None
    function_call: None = None


class Function(_Input, frozen=True, kw_only=True):
    """A function that the model may call; `parameters` is its JSON schema."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(_Input, frozen=True, kw_only=True):
    """A tool that the model may use."""

    function: Function
    type: Literal["function"] = "function"


class NamedFunction(_Input, frozen=True, kw_only=True):
    """The name of a function that must be called."""

    name: Name


class NamedTool(_Input, frozen=True, kw_only=True):
    """A tool choice that names its function."""

    function: NamedFunction
    type: Literal["function"] = "function"


class JsonSchema(_Input, frozen=True, kw_only=True):
    """A named JSON schema for the answer."""

    name: Name = "answer"
    schema: dict[str, Any] = {}
    description: str | None = None
    strict: bool | None = None


class TextFormat(_Input, frozen=True, kw_only=True, tag="text", tag_field="type"):
    """Free text."""


class JsonObjectFormat(_Input, frozen=True, kw_only=True, tag="json_object", tag_field="type"):
    """Any JSON object."""


class JsonSchemaFormat(_Input, frozen=True, kw_only=True, tag="json_schema", tag_field="type"):
    """JSON that fits a schema."""

    json_schema: JsonSchema


class RegexFormat(_Input, frozen=True, kw_only=True, tag="regex", tag_field="type"):
    """Text that matches a regular expression."""

    regex: Annotated[str, Meta(min_length=1, max_length=2048)]


class ChoiceFormat(_Input, frozen=True, kw_only=True, tag="choice", tag_field="type"):
    """Exactly one of the given texts."""

    choices: Annotated[list[Name], Meta(min_length=1, max_length=256)]


ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat | RegexFormat | ChoiceFormat


class Sampling(_Input, frozen=True, kw_only=True):
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


class EmbeddingInput(_Input, frozen=True, kw_only=True):
    """The input of task `embedding`: one text or several."""

    input: str | Annotated[list[str], Meta(min_length=1, max_length=2048)]
    dimensions: Annotated[int, Meta(ge=1, le=65_536)] | None = None


class SpeechInput(_Input, frozen=True, kw_only=True):
    """The input of task `text-to-speech`.

    `speed` multiplies the normal rate; `pitch` runs from 0 to 100, 50 is normal.
    """

    input: Annotated[str, Meta(min_length=1, max_length=100_000)]
    voice: str | None = None
    language: str | None = None
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] | None = None
    speed: Annotated[float, Meta(ge=0.25, le=4)] | None = None
    pitch: Annotated[int, Meta(ge=0, le=100)] | None = None
    instructions: Annotated[str, Meta(max_length=4096)] | None = None


Input = ChatInput | CompletionInput | EmbeddingInput | SpeechInput

INPUT_TYPES: dict[Task, type[Input]] = {
    "chat": ChatInput,
    "completion": CompletionInput,
    "embedding": EmbeddingInput,
    "text-to-speech": SpeechInput,
}
