"""Which model a path of fal's means: our own name, an alias, fal's name of a route, with its last parts or without."""

from collections.abc import Sequence
from typing import get_args

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.contract.tasks import Task
from gateway.errors import NotFound
from gateway.http.model_names import Names

OWNER = "faregate"
"""The owner under which models are found by our own names, since fal's client wants one for some calls."""
MOST_PARTS = 8
NAMESPACES = ("workflows", "comfy")
"""What fal puts before the owner of some apps."""

_WORDS: dict[str, tuple[Task, ...]] = {task: (task,) for task in get_args(Task)} | {
    "image-to-image": ("image-edit", "image-restyle"),
    "edit": ("image-edit", "image-blend"),
    "edit-image": ("image-edit",),
    "inpainting": ("image-edit",),
    "redux": ("image-edit",),
    "upscale": ("image-upscale", "video-upscale"),
    "tts": ("text-to-speech",),
    "text-to-audio": ("music", "text-to-speech"),
    "transcribe": ("speech-to-text",),
}
"""The last parts of a path that only say what is to be done. Other parts name a model of its own: they are never
dropped, so that nobody gets, and pays, another model than the one that was named."""


class Named(msgspec.Struct, frozen=True):
    """A model, and the path below which its requests are found."""

    model: Model
    app: str


def fal_names() -> Names:
    """Make the names that models have in this family beside their own."""
    return Names("fal", lambda model, wire: [] if wire else [f"{OWNER}/{model.name}"])


def named(names: Names, snapshot: Snapshot, parts: Sequence[str]) -> Named:
    """Find the model of a path. Raises NotFound."""
    for end in range(len(parts) if len(parts) <= MOST_PARTS else 0, 0, -1):
        model = names.find(snapshot, "/".join(parts[:end]))
        if model is not None and all(set(_WORDS.get(word, ())) & set(model.tasks) for word in parts[end:]):
            return Named(model, app_of(parts))
    raise NotFound(
        "There is no such model. GET /v1/models lists those that can be called.", code="model_not_found", param="model"
    )


def app_of(parts: Sequence[str]) -> str:
    """Give the part of a path that follow-up addresses keep: owner and name, with the namespace before them."""
    return "/".join(parts[: 3 if parts[0] in NAMESPACES else 2])
