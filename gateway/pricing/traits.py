"""The traits of a request: what conditions of prices look at, known before it runs and pinned at admission.

They are the values of the parameters that the catalog marks `priced`, and `width`, `height` and `seconds` of what is
to be made, where the task knows them.
"""

from collections.abc import Callable, Iterable
from typing import Any

from gateway.contract.inputs import (
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    ImageToVideoInput,
    ImageUpscaleInput,
    Input,
    Media,
    MusicInput,
    TalkingHeadInput,
    TranscriptionInput,
    VideoInput,
    VideoUpscaleInput,
)
from gateway.contract.inputs.image import DEFAULT_SCALE, AnyImageInput
from gateway.contract.inputs.speech import music_seconds
from gateway.contract.inputs.video import Filming, fps_of, frames_of
from gateway.contract.tasks import Task
from gateway.pricing.conditions import Trait
from gateway.pricing.media_bounds import film_size, image_size, talking_size

_SIZE = ("width", "height")
_LENGTH = ("seconds",)

_IMAGES: tuple[Task, ...] = (
    "text-to-image",
    "image-edit",
    "image-blend",
    "image-relight",
    "image-restyle",
    "image-upscale",
)

MEASURED_TRAITS: dict[Task, tuple[str, ...]] = {
    **dict.fromkeys(_IMAGES, _SIZE),
    "text-to-video": _SIZE + _LENGTH,
    "image-to-video": _SIZE + _LENGTH,
    "video-upscale": _SIZE + _LENGTH,
    "talking-head": _SIZE + _LENGTH,
    "music": _LENGTH,
    "speech-to-text": _LENGTH,
}
"""The traits that each task knows by itself; the length of what a talking head says only where it is given as sound."""


def traits_of(priced: Iterable[str], value: Input) -> dict[str, Trait]:
    """Give the traits of a staged input that has its model's defaults in it; `priced` names parameters.

    What a caller left out and the model has no default for is not among them.
    """
    traits: dict[str, Trait] = {}
    measure = _MEASURES.get(type(value))
    if measure is not None:
        traits |= measure(value)
    extra = value.extra or {}
    for name in priced:
        given = getattr(value, name, None) if name not in extra else extra[name]
        if isinstance(given, str | int | float | bool) and name not in traits:
            traits[name] = _number(given) if isinstance(given, float) else given
    return traits


def _number(value: float) -> int | float:
    """Write a whole number without a fraction."""
    return int(value) if value.is_integer() else value


def _image(value: AnyImageInput) -> dict[str, Trait]:
    return dict(zip(_SIZE, image_size(value), strict=True))


def _film(value: Filming) -> dict[str, Trait]:
    width, height = film_size(value)
    if value.frames is None and value.seconds is not None:
        seconds = float(value.seconds)
    else:
        seconds = frames_of(value) / fps_of(value)
    return {"width": width, "height": height, "seconds": _number(seconds)}


def _upscaled(value: VideoUpscaleInput) -> dict[str, Trait]:
    source, scale = value.video, value.scale or DEFAULT_SCALE
    if not isinstance(source, Media):
        return {}
    return {"width": source.width * scale, "height": source.height * scale} | _heard(source)


def _talking(value: TalkingHeadInput) -> dict[str, Trait]:
    return dict(zip(_SIZE, talking_size(value), strict=True)) | _heard(value.audio)


def _heard(source: object) -> dict[str, Trait]:
    return {"seconds": _number(source.duration_ms / 1000)} if isinstance(source, Media) else {}


_MEASURES: dict[type[Input], Callable[[Any], dict[str, Trait]]] = {
    **dict.fromkeys(
        (ImageInput, ImageEditInput, ImageBlendInput, ImageRelightInput, ImageRestyleInput, ImageUpscaleInput), _image
    ),
    **dict.fromkeys((VideoInput, ImageToVideoInput), _film),
    VideoUpscaleInput: _upscaled,
    TalkingHeadInput: _talking,
    MusicInput: lambda value: {"seconds": _number(float(music_seconds(value)))},
    TranscriptionInput: lambda value: _heard(value.file),
}
