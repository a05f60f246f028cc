"""The inputs of the tasks that make video.

Field names and shapes: OpenAI API reference (`prompt`, `seconds`, `size`); the rest: diffusers.
"""

from typing import Annotated

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

MAX_FRAMES = 10_000
MAX_VIDEO_S = 600
DEFAULT_FPS = 16
DEFAULT_FRAMES = 49


class Filming(TaskInput, frozen=True, kw_only=True):
    """What video inputs share. `frames` counts; else `seconds` times `fps`."""

    negative_prompt: Annotated[str, Meta(max_length=32_000)] | None = None
    size: Size | None = None
    seconds: Annotated[float, Meta(gt=0, le=MAX_VIDEO_S)] | None = None
    fps: Annotated[int, Meta(ge=1, le=120)] | None = None
    frames: Annotated[int, Meta(ge=1, le=MAX_FRAMES)] | None = None
    steps: Steps | None = None
    guidance: Guidance | None = None
    seed: Seed | None = None


class VideoInput(Filming, frozen=True, kw_only=True):
    """The input of task `text-to-video`."""

    prompt: Prompt


class ImageToVideoInput(Filming, frozen=True, kw_only=True):
    """The input of task `image-to-video`: the image is the first frame."""

    image: MediaSource
    prompt: Prompt | None = None


class VideoUpscaleInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `video-upscale`."""

    video: MediaSource
    prompt: Prompt | None = None
    scale: Annotated[int, Meta(ge=2, le=8)] | None = None
    strength: Strength | None = None
    steps: Steps | None = None
    guidance: Guidance | None = None
    seed: Seed | None = None


class TalkingHeadInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `talking-head`: a face, and what it says, as text or as sound."""

    image: MediaSource
    text: Annotated[str, Meta(min_length=1, max_length=20_000)] | None = None
    audio: MediaSource | None = None
    voice: Annotated[str, Meta(max_length=256)] | None = None
    prompt: Prompt | None = None
    size: Size | None = None
    fps: Annotated[int, Meta(ge=1, le=120)] | None = None
    steps: Steps | None = None
    seed: Seed | None = None


def fps_of(value: Filming | TalkingHeadInput) -> int:
    """Give the frames a second of the video that is asked for."""
    return value.fps or DEFAULT_FPS


def frames_of(value: Filming) -> int:
    """Give the number of frames that is asked for."""
    if value.frames is not None:
        return value.frames
    return max(1, round(value.seconds * fps_of(value))) if value.seconds is not None else DEFAULT_FRAMES
