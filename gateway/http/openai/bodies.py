"""What the OpenAI endpoints add to the input of their task."""

from operator import attrgetter
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from gateway.contract.inputs import (
    INPUT_TYPES,
    ChatInput,
    CompletionInput,
    EmbeddingInput,
    Input,
    MediaSource,
    SpeechInput,
)
from gateway.contract.inputs.fields import Seed
from gateway.flow.call import Priority
from gateway.http.wishes import Fallbacks, Provider

ModelName = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=512, pattern="^[^\\x00]*$")]
MetadataName = Annotated[str, Meta(max_length=512, pattern="^(?!faregate:)[^\\x00]*$")]
Metadata = Annotated[dict[MetadataName, Text], Meta(max_length=16)]
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
    models: Fallbacks | None = None
    provider: Provider | None = None


class CompletionBody(CompletionInput, frozen=True, kw_only=True):
    """`POST /v1/completions`."""

    model: ModelName
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Text | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


class EmbeddingBody(EmbeddingInput, frozen=True, kw_only=True):
    """`POST /v1/embeddings`."""

    model: ModelName
    encoding_format: Annotated[str, Meta(pattern="^(float|base64)$")] = "float"
    user: Text | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


class VoiceId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A voice given by its id."""

    id: str


class SpeechBody(SpeechInput, frozen=True, kw_only=True):
    """`POST /v1/audio/speech`."""

    model: ModelName
    voice: str | VoiceId | None = None  # type: ignore[assignment]
    """A voice's name; an uploaded file's id stands for a voice like that in the file."""
    sample: MediaSource | None = None
    """For models that clone a voice: how it sounds."""
    sample_text: Annotated[str, Meta(max_length=4096)] | None = None
    """What is said in the sample."""
    seed: Seed | None = None
    stream_format: Annotated[str, Meta(pattern="^(audio|sse)$")] | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


_READERS: "dict[type[Any], attrgetter[Any]]" = {
    kind: attrgetter(*kind.__struct_fields__) for kind in INPUT_TYPES.values()
}


def input_of(body: Any, kind: type[I]) -> I:
    """Take the input of a task out of a body that holds more."""
    return kind(**dict(zip(kind.__struct_fields__, _READERS[kind](body), strict=True)))
