"""What the inputs of all tasks share: their base, and the limits of fields that several have."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

MAX_CHOICES = 16

Count = Annotated[int, Meta(ge=1, le=MAX_CHOICES)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Prompt = Annotated[str, Meta(min_length=1, max_length=32_000)]
Size = Annotated[str, Meta(pattern=r"^([1-9][0-9]{1,3}x[1-9][0-9]{1,3}|auto)$")]
"""Width and height in pixels, as `1024x768`; `auto` is the model's own."""
Steps = Annotated[int, Meta(ge=1, le=500)]
"""Denoising steps."""
Guidance = Annotated[float, Meta(ge=0, le=50)]
"""How closely the prompt is followed (classifier-free guidance scale)."""
Strength = Annotated[float, Meta(ge=0, le=1)]
"""How far an output may go from its input: 0 leaves it as it is."""

MAX_SOURCE_CHARS = 64 * 1024 * 1024


class InputStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all inputs share: frozen, named fields only, nothing unknown."""


class TaskInput(InputStruct, frozen=True, kw_only=True):
    """What the inputs of all tasks share."""

    extra: dict[str, Any] | None = None
    """Fields of one model alone, which its catalog entry declares beside those of the task; by their names there."""


class Media(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A media file of the caller that lies in the blob store, with what was found out about it before a hold.

    Never taken from a caller: the step `stage` puts it in the place of an address, a data URL or a file id.
    """

    blob: str
    media_type: str
    size_bytes: int
    width: int = 0
    height: int = 0
    duration_ms: int = 0
    frames: int = 0


MediaSource = Annotated[str, Meta(min_length=1, max_length=MAX_SOURCE_CHARS)] | Media
"""From a caller: a data URL, an `https` address, or the id of an uploaded file. From `stage` on: a Media."""

DEFAULT_SIDE = 512


def size_of(size: str | None) -> tuple[int, int]:
    """Give width and height; a square of 512 where neither caller nor model says."""
    if size is None or size == "auto":
        return DEFAULT_SIDE, DEFAULT_SIDE
    width, _, height = size.partition("x")
    return int(width), int(height)
