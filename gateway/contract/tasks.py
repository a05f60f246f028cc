"""The tasks a model may do, and the input each of them takes."""

from typing import Literal, get_args

Task = Literal[
    "chat",
    "completion",
    "embedding",
    "text-to-speech",
    "text-to-image",
    "image-edit",
    "image-blend",
    "image-relight",
    "image-restyle",
    "image-upscale",
    "text-to-video",
    "image-to-video",
    "video-upscale",
    "talking-head",
    "voice-clone",
    "music",
    "speech-to-text",
    "rerank",
]
"""What a model does. Stored as its position in `TASKS`: append, never reorder."""

TASKS: tuple[Task, ...] = get_args(Task)
