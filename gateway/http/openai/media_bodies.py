"""What the OpenAI endpoints for images, sound and video take, as JSON and as forms."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.contract.inputs import MediaSource, TranscriptionInput
from gateway.contract.inputs.fields import MAX_SOURCE_CHARS, Guidance, Prompt, Seed, Size, Steps, Strength
from gateway.contract.inputs.image import Imaging
from gateway.contract.inputs.video import MAX_FRAMES, MAX_VIDEO_S
from gateway.flow.call import Priority
from gateway.http.openai.bodies import MaxPrice, Metadata, ModelName, Text
from gateway.http.wishes import Fallbacks, Provider

Weights = Annotated[list[Annotated[float, Meta(gt=0, le=1)]], Meta(max_length=8)]
Sources = Annotated[list[MediaSource], Meta(min_length=1, max_length=8)]
SpokenText = Annotated[str, Meta(min_length=1, max_length=20_000)]


SourceText = Annotated[str, Meta(min_length=1, max_length=MAX_SOURCE_CHARS)]


class ImageAnswer(Imaging, frozen=True, kw_only=True):
    """What all image calls say beside the input."""

    model: ModelName
    response_format: Literal["url", "b64_json"] | None = None
    stream: bool | None = None
    user: Text | None = None
    metadata: Metadata | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


class ImageBody(ImageAnswer, frozen=True, kw_only=True):
    """`POST /v1/images/generations`."""

    prompt: Prompt


class ImageEditBody(ImageAnswer, frozen=True, kw_only=True):
    """`POST /v1/images/edits`: any task that makes an image from images."""

    image: MediaSource | Sources
    prompt: Prompt | None = None
    mask: MediaSource | None = None
    input_fidelity: Literal["low", "high"] | None = None
    strength: Strength | None = None
    image_guidance: Guidance | None = None
    weights: Weights | None = None
    direction: Literal["left", "right", "top", "bottom", "front", "back"] | None = None
    scale: Annotated[int, Meta(ge=2, le=8)] | None = None


class ImageVariationBody(ImageAnswer, frozen=True, kw_only=True):
    """`POST /v1/images/variations`."""

    image: MediaSource
    prompt: Prompt | None = None
    strength: Strength | None = None


TranscriptFormat = Literal["json", "text", "srt", "verbose_json", "vtt"]


class TranscriptionBody(TranscriptionInput, frozen=True, kw_only=True):
    """`POST /v1/audio/transcriptions` and `POST /v1/audio/translations`."""

    model: ModelName
    response_format: TranscriptFormat = "json"
    stream: bool | None = None
    metadata: Metadata | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A picture named by its file or its address."""

    file_id: str | None = None
    image_url: str | None = None


class VideoBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST /v1/videos`: any task that makes a video."""

    model: ModelName
    prompt: Prompt | None = None
    input_reference: SourceText | Reference | None = None
    """The picture to begin with, or whose face is to speak."""
    image: MediaSource | None = None
    """The same, as the native family calls it; a form's file comes to stand here."""
    video: MediaSource | None = None
    """The video to be made larger."""
    audio: MediaSource | None = None
    """What a face is to say, as sound."""
    text: SpokenText | None = None
    """What a face is to say; the prompt, where it is left out."""
    voice: Annotated[str, Meta(max_length=256)] | None = None
    seconds: Annotated[float, Meta(gt=0, le=MAX_VIDEO_S)] | Annotated[str, Meta(max_length=16)] | None = None
    size: Size | None = None
    negative_prompt: Annotated[str, Meta(max_length=32_000)] | None = None
    fps: Annotated[int, Meta(ge=1, le=120)] | None = None
    frames: Annotated[int, Meta(ge=1, le=MAX_FRAMES)] | None = None
    steps: Steps | None = None
    guidance: Guidance | None = None
    strength: Strength | None = None
    scale: Annotated[int, Meta(ge=2, le=8)] | None = None
    seed: Seed | None = None
    extra: dict[str, Any] | None = None
    """Fields of one model alone."""
    user: Text | None = None
    metadata: Metadata | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


class RemixBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST /v1/videos/{id}/remix`."""

    prompt: Prompt
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None


class DocumentText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document as an object."""

    text: str


class RerankBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST /v1/rerank`: the shape that Cohere, Jina and vLLM share."""

    model: ModelName
    query: Annotated[str, Meta(min_length=1, max_length=100_000)]
    documents: Annotated[list[str | DocumentText], Meta(min_length=1, max_length=1_000)]
    top_n: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    return_documents: bool | None = None
    extra: dict[str, Any] | None = None
    """Fields of one model alone."""
    user: Text | None = None
    priority: Priority = "normal"
    max_price: MaxPrice | None = None
    models: Fallbacks | None = None
    provider: Provider | None = None
