"""What fal alone calls otherwise, read before the tables that all vendors share. Sources: the schemas of fal's models.

A name that the model's task has itself, or that its catalog entry declares, is left as it is.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.catalog.model import Model
from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest
from gateway.http.vendor_names import NAMES

PRESETS = {
    "square_hd": "1024x1024",
    "square": "512x512",
    "portrait_4_3": "768x1024",
    "portrait_16_9": "576x1024",
    "landscape_4_3": "1024x768",
    "landscape_16_9": "1024x576",
}
"""fal's names of sizes, in pixels."""

_FILM = {"video_size": "size"}
_FRAME = {"image_urls": "image", "start_image_url": "image", "first_frame_url": "image"}
_FIELDS: Mapping[Task, Mapping[str, str]] = {
    "image-edit": {"image_urls": "image", "mask_image_url": "mask"},
    "image-relight": {"image_urls": "image"},
    "image-restyle": {"image_urls": "image"},
    "text-to-video": _FILM,
    "image-to-video": _FILM | _FRAME,
    "talking-head": _FILM | {"image_urls": "image", "text_input": "text"},
    "voice-clone": {
        "gen_text": "input",
        "ref_audio_url": "sample",
        "reference_audio_url": "sample",
        "ref_text": "sample_text",
    },
    "music": {"seconds_total": "seconds", "audio_length": "seconds"},
}
"""Names by task, beyond those in `gateway.http.vendor_names`."""


def fal_given(model: Model, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a payload as far as only fal writes it so. Raises InvalidRequest naming the field.

    A null is a field that was not given. What is left over keeps its name, to be refused by it where nobody knows it.
    """
    known = {name for task in model.tasks for name in INPUT_TYPES[task].__struct_fields__} | model.parameters.keys()
    given: dict[str, Any] = {}
    for name, value in payload.items():
        if value is None:
            continue
        if name not in model.parameters and (read := _READERS.get(name)) is not None:
            given |= read(value)
        else:
            given[name if name in known else _renamed(model, name, value, known, payload)] = value
    return given


def _renamed(model: Model, name: str, value: Any, known: set[str], payload: Mapping[str, Any]) -> str:
    if name == "image_urls" and isinstance(value, list) and len(value) != 1 and "images" in known:
        return "images"
    for task in model.tasks:
        field = _FIELDS.get(task, {}).get(name)
        if field is not None and field not in payload:
            return field
    return name


def written(model: Model, payload: Mapping[str, Any], field: str) -> str:
    """Say how the caller wrote a field of ours, for errors."""
    if field in payload:
        return field
    for task in model.tasks:
        for table in (_FIELDS.get(task, {}), NAMES[task]):
            for name, ours in table.items():
                if ours == field and name in payload:
                    return name
    return _ANSWERS_FOR.get(field, "") if _ANSWERS_FOR.get(field, "") in payload else field


def _size(name: str) -> Callable[[Any], dict[str, Any]]:
    def read(value: Any) -> dict[str, Any]:
        return {name: PRESETS.get(value, value) if isinstance(value, str) else value}

    return read


def _only_false(name: str, why: str) -> Callable[[Any], dict[str, Any]]:
    def read(value: Any) -> dict[str, Any]:
        if value is not False:
            raise InvalidRequest(why, param=name)
        return {}

    return read


def _translation(value: Any) -> dict[str, Any]:
    if value not in ("transcribe", "translate"):
        raise InvalidRequest("task is `transcribe` or `translate`.", param="task")
    return {"translate": True} if value == "translate" else {}


def _granularity(value: Any) -> dict[str, Any]:
    if value not in ("none", "segment", "word"):
        raise InvalidRequest("chunk_level is `none`, `segment` or `word`.", param="chunk_level")
    return {} if value == "none" else {"timestamp_granularities": [value]}


_READERS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "image_size": _size("image_size"),
    "video_size": _size("size"),
    "sync_mode": _only_false("sync_mode", "Media are answered by address; leave sync_mode out."),
    "enable_safety_checker": _only_false(
        "enable_safety_checker", "This model has no safety checker that could be switched on."
    ),
    "task": _translation,
    "chunk_level": _granularity,
}
"""Fields whose values are fal's own."""

_ANSWERS_FOR = {"translate": "task", "timestamp_granularities": "chunk_level", "size": "image_size"}
