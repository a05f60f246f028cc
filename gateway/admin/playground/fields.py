"""The form of a model for one of its tasks: what the task cannot do without, and what the model declares."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, get_args

import msgspec

from gateway.catalog.model import Model
from gateway.catalog.parameters import Parameter
from gateway.contract.inputs import INPUT_TYPES, MEDIA_FIELDS
from gateway.contract.tasks import Task

Kind = Literal["line", "text", "integer", "number", "choice", "check", "file", "files", "lines", "json"]

TEXTS = frozenset({"prompt", "input", "query", "text", "message", "negative_prompt", "lyrics", "system"})
"""Fields that are written in several lines."""
LINES = frozenset({"documents", "stop"})
"""Lists of texts, one a line."""
ALWAYS: dict[Task, tuple[str, ...]] = {
    "chat": ("max_tokens", "temperature"),
    "completion": ("max_tokens", "temperature"),
    "text-to-image": ("size", "n", "seed"),
    "text-to-speech": ("voice",),
    "voice-clone": ("voice",),
    "talking-head": ("text", "audio"),
    "image-relight": ("prompt",),
    "image-restyle": ("prompt",),
    "image-to-video": ("prompt",),
}
"""Fields that are worth a try of any model, where it takes them."""
_NUMBERS: dict[str, Kind] = {
    "max_tokens": "integer", "temperature": "number", "n": "integer", "seed": "integer",
    "seconds": "number", "scale": "integer", "top_n": "integer", "duration": "number",
}  # fmt: skip
_SAMPLES = {
    "message": "Say in one sentence what a fare gate is.",
    "prompt": "A red barn at dawn, fog over the field, 35 mm",
    "input": "Mind the gap between the train and the platform.",
    "text": "Mind the gap between the train and the platform.",
    "query": "What opens a fare gate?",
    "documents": "A ticket opens the gate.\nThe barn is red.",
}


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the form."""

    name: str
    kind: Kind
    label: str
    value: str = ""
    hint: str = ""
    required: bool = False
    choices: Sequence[str] = ()
    attributes: dict[str, str] = {}
    priced: bool = False


def fields_of(model: Model, task: Task) -> list[Field]:
    """Make the fields of a form, those that are needed first."""
    if task == "chat":
        needed = [_needed("message", "text"), _plain("system", "text")]
    else:
        needed = [_needed(name, _kind(task, name)) for name in _required(task)]
    seen = {field.name for field in needed} | {"messages"}
    known = {field.name for field in msgspec.structs.fields(INPUT_TYPES[task])} - {"extra"}
    ours = set(model.vendor_fields)
    declared = [
        _declared(task, name, parameter)
        for name, parameter in model.parameters.items()
        if name not in seen and (name in known or name in ours)
    ]
    seen |= {field.name for field in declared}
    closed = model.upstream_only and task not in ("chat", "completion")  # it takes what it declares
    more = [] if closed else [name for name in ALWAYS.get(task, ()) if name in known and name not in seen]
    return [*needed, *declared, *(_plain(name, _NUMBERS.get(name) or _kind(task, name)) for name in more)]


@cache
def _required(task: Task) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(INPUT_TYPES[task]) if field.required)


def _kind(task: Task, name: str) -> Kind:
    if name in MEDIA_FIELDS[INPUT_TYPES[task]]:
        return "files" if name == "images" else "file"
    if name in LINES:
        return "lines"
    return "text" if name in TEXTS else "line"


def _needed(name: str, kind: Kind) -> Field:
    return Field(name=name, kind=kind, label=_label(name), value=_SAMPLES.get(name, ""), required=True)


def _plain(name: str, kind: Kind) -> Field:
    return Field(name=name, kind=kind, label=_label(name), attributes=_steps(kind))


def _declared(task: Task, name: str, parameter: Parameter) -> Field:
    """Make the field of a parameter, with its limits."""
    kind: Kind = "line"
    attributes: dict[str, str] = {}
    if parameter.choices and parameter.type not in ("array", "object"):
        kind = "choice"
    elif parameter.type in ("integer", "number"):
        kind = "integer" if parameter.type == "integer" else "number"
        attributes = _steps(kind) | _limits(parameter)
    elif parameter.type == "boolean":
        kind = "check"
    elif name in MEDIA_FIELDS[INPUT_TYPES[task]]:
        kind = "files" if parameter.type == "array" else "file"
    elif parameter.type in ("array", "object"):
        kind = "json"
    elif name in TEXTS:
        kind = "text"
    return Field(
        name=name,
        kind=kind,
        label=_label(name),
        value=_text(parameter.default),
        hint=parameter.description,
        required=parameter.required and parameter.default is None,
        choices=[_text(choice) for choice in parameter.choices] if kind == "choice" else (),
        attributes=attributes,
        priced=parameter.priced,
    )


def _steps(kind: Kind) -> dict[str, str]:
    return {"step": "1" if kind == "integer" else "any"} if kind in ("integer", "number") else {}


def _limits(parameter: Parameter) -> dict[str, str]:
    limits = {"min": parameter.minimum, "max": parameter.maximum}
    return {name: f"{value:.15g}" for name, value in limits.items() if value is not None}


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def tasks_of(model: Model, wanted: str) -> Task:
    """Give the task that is asked for, where the model does it; else its first."""
    found = [task for task in get_args(Task) if task == wanted and task in model.tasks]
    return found[0] if found else model.tasks[0]
