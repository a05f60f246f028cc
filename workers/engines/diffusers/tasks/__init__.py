"""The tasks, one file each: from a caller's input and files to a Drawing.

A new task is a new file and a line here.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from gateway.contract.inputs import (
    ImageBlendInput,
    ImageEditInput,
    ImageInput,
    ImageRelightInput,
    ImageRestyleInput,
    ImageToVideoInput,
    ImageUpscaleInput,
    Input,
    VideoInput,
    VideoUpscaleInput,
)
from gateway.contract.tasks import Task
from workers.engines.diffusers.drawing import Drawing, Role
from workers.engines.diffusers.tasks import (
    image_blend,
    image_edit,
    image_relight,
    image_restyle,
    image_to_video,
    image_upscale,
    text_to_image,
    text_to_video,
    video_upscale,
)

Files = dict[str, list[bytes]]
"""The contents of the media fields of an input."""


class Adapter(msgspec.Struct, frozen=True):
    """How a task is served: what it takes, the call that its model must offer, and what turns the one into the other.

    `draw` raises RefusedInput; it may take tens of milliseconds where files are to be decoded.
    """

    takes: type[Input]
    role: Role
    draw: Callable[[Any, Files], Drawing]


TASKS: dict[Task, Adapter] = {
    "text-to-image": Adapter(ImageInput, "text2image", text_to_image.draw),
    "image-edit": Adapter(ImageEditInput, "image2image", image_edit.draw),
    "image-blend": Adapter(ImageBlendInput, "image2image", image_blend.draw),
    "image-relight": Adapter(ImageRelightInput, "image2image", image_relight.draw),
    "image-restyle": Adapter(ImageRestyleInput, "image2image", image_restyle.draw),
    "image-upscale": Adapter(ImageUpscaleInput, "upscale", image_upscale.draw),
    "text-to-video": Adapter(VideoInput, "text2video", text_to_video.draw),
    "image-to-video": Adapter(ImageToVideoInput, "image2video", image_to_video.draw),
    "video-upscale": Adapter(VideoUpscaleInput, "upscale", video_upscale.draw),
}
