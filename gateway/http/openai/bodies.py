"""What the OpenAI endpoints add to the input of their task."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, Input, SpeechInput
from gateway.flow.call import Priority

ModelName = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=512, pattern="^[^\\x00]*$")]
Metadata = Annotated[dict[Text, Text], Meta(max_length=16)]
MaxPrice = Annotated[str, Meta(max_length=40)] | Annotated[float, Meta(ge=0)]

I = TypeVar("I", bound=Input)  # noqa: E741


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a stream also tells."""

    include_usage: bool = False
    include_obfuscation: bool = False


class ChatBody(ChatInput, frozen=True, kw_only=True):
    """`POST /v1/chat/completions`."""

    model: ModelName
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Text | None = None
    metadata: Metadata | None = None
    store: bool | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None


class CompletionBody(CompletionInput, frozen=True, kw_only=True):
    """`POST /v1/completions`."""

    model: ModelName
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Text | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None


class EmbeddingBody(EmbeddingInput, frozen=True, kw_only=True):
    """`POST /v1/embeddings`."""

    model: ModelName
    encoding_format: Annotated[str, Meta(pattern="^(float|base64)$")] = "float"
    user: Text | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None


class VoiceId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A voice given by its id."""

    id: str


class SpeechBody(SpeechInput, frozen=True, kw_only=True):
    """`POST /v1/audio/speech`."""

    model: ModelName
    voice: str | VoiceId | None = None  # type: ignore[assignment]
    stream_format: Annotated[str, Meta(pattern="^(audio|sse)$")] | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None


def input_of(body: Any, kind: type[I]) -> I:
    """Take the input of a task out of a body that holds more."""
    return kind(**{name: getattr(body, name) for name in kind.__struct_fields__})
