"""The inputs of the tasks that make images.

Field names and shapes: OpenAI API reference (`prompt`, `n`, `size`, `quality`, `style`, `background`, `output_format`,
`output_compression`, `moderation`, `partial_images`); `negative_prompt`, `steps`, `guidance`, `strength`: diffusers.
"""

from typing import Annotated, Literal

from msgspec import Meta

from gateway.contract.inputs.fields import (
    Guidance,
    MediaSource,
    Prompt,
    Seed,
    Size,
    Steps,
    Strength,
    TaskInput,
)

MAX_IMAGES = 10
ImageFormat = Literal["png", "jpeg", "webp"]
ImageCount = Annotated[int, Meta(ge=1, le=MAX_IMAGES)]
Word = Annotated[str, Meta(max_length=32)]


class Imaging(TaskInput, frozen=True, kw_only=True):
    """What all image inputs share: how the image is drawn, and how it is written."""

    negative_prompt: Annotated[str, Meta(max_length=32_000)] | None = None
    n: ImageCount | None = None
    size: Size | None = None
    steps: Steps | None = None
    guidance: Guidance | None = None
    seed: Seed | None = None
    """Of the first image; each further one adds one."""
    quality: Word | None = None
    style: Word | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    moderation: Literal["low", "auto"] | None = None
    output_format: ImageFormat | None = None
    output_compression: Annotated[int, Meta(ge=0, le=100)] | None = None
    partial_images: Annotated[int, Meta(ge=0, le=3)] | None = None
    """Previews while it is drawn, to a caller who streams."""


class ImageInput(Imaging, frozen=True, kw_only=True):
    """The input of task `text-to-image`."""

    prompt: Prompt


class ImageEditInput(Imaging, frozen=True, kw_only=True):
    """The input of task `image-edit`: by instruction, or inside the transparent or white part of a mask."""

    prompt: Prompt
    image: MediaSource
    mask: MediaSource | None = None
    strength: Strength | None = None
    image_guidance: Guidance | None = None
    input_fidelity: Literal["low", "high"] | None = None


class ImageBlendInput(Imaging, frozen=True, kw_only=True):
    """The input of task `image-blend`: several images made into one."""

    images: Annotated[list[MediaSource], Meta(min_length=2, max_length=8)]
    weights: Annotated[list[Annotated[float, Meta(gt=0, le=1)]], Meta(max_length=8)] | None = None
    """How much of each image; equal parts where it is left out."""
    prompt: Prompt | None = None
    strength: Strength | None = None


class ImageRelightInput(Imaging, frozen=True, kw_only=True):
    """The input of task `image-relight`: the same picture in another light."""

    image: MediaSource
    prompt: Prompt | None = None
    """The light in words."""
    direction: Literal["left", "right", "top", "bottom", "front", "back"] | None = None
    strength: Strength | None = None


class ImageRestyleInput(Imaging, frozen=True, kw_only=True):
    """The input of task `image-restyle`: the same picture in another style."""

    image: MediaSource
    prompt: Prompt
    strength: Strength | None = None


class ImageUpscaleInput(Imaging, frozen=True, kw_only=True):
    """The input of task `image-upscale`."""

    image: MediaSource
    prompt: Prompt | None = None
    scale: Annotated[int, Meta(ge=2, le=8)] | None = None
    """How many times as wide and high; the model's own where it is left out."""


DEFAULT_STEPS = 30
DEFAULT_SCALE = 4

AnyImageInput = (
    ImageInput | ImageEditInput | ImageBlendInput | ImageRelightInput | ImageRestyleInput | ImageUpscaleInput
)


def source_image(value: AnyImageInput) -> MediaSource | None:
    """Give the picture that the output takes its size from where none is asked for; None where there is none."""
    if isinstance(value, ImageInput):
        return None
    return value.images[0] if isinstance(value, ImageBlendInput) else value.image
