"""What kinds of things fields of inputs take and steps of a workflow give: text, numbers, pictures, videos, sounds."""

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from gateway.catalog.parameters import Parameter, field_check
from gateway.catalog.problems import shown
from gateway.catalog.vendor import check_extra, compile_vendor
from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.tasks import Task
from gateway.contract.workflow import MEDIA_PROPERTIES
from gateway.errors import InvalidRequest

Kinds = frozenset[str]

GIVES: dict[Task, str] = {
    "chat": "text",
    "completion": "text",
    "speech-to-text": "text",
    "embedding": "vectors",
    "rerank": "a ranking",
    "text-to-image": "image",
    "image-edit": "image",
    "image-blend": "image",
    "image-relight": "image",
    "image-restyle": "image",
    "image-upscale": "image",
    "text-to-video": "video",
    "image-to-video": "video",
    "video-upscale": "video",
    "talking-head": "video",
    "text-to-speech": "audio",
    "voice-clone": "audio",
    "music": "audio",
}
"""What comes of each task."""

FIELD_MEDIA = {
    "image": "image",
    "mask": "image",
    "images": "images",
    "video": "video",
    "audio": "audio",
    "sample": "audio",
    "file": "audio",
}
"""What kind of media the fields of inputs take that take any."""

_PLAIN: dict[Any, str] = {str: "text", int: "whole", float: "number", bool: "flag"}
_OWN = {"string": "text", "integer": "whole", "number": "number", "boolean": "flag"}
_PROPERTIES: dict[str, tuple[str, ...]] = {
    "image": ("width", "height", "size"),
    "audio": ("duration_s", "duration_ms"),
    "video": tuple(MEDIA_PROPERTIES),
}


class Wrong(Exception):
    """A field that does not fit: what was expected, empty for what its task takes, and what was found."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(expected, found)


def spoken(kinds: Kinds) -> str:
    """Write kinds for people."""
    return " or ".join(sorted(kinds)) or "nothing"


def fits(source: Kinds, target: Kinds) -> bool:
    """Say whether what is referred to may stand where it is wanted."""
    return bool(source & target) or ("whole" in source and "number" in target)


def input_kinds(task: Task, name: str) -> Kinds:
    """Give the kinds of a field of a task's input; none where it has no such field."""
    kind = INPUT_TYPES[task]
    return field_kinds(kind, name) if name in kind.__struct_fields__ else frozenset()


def media_kinds(kinds: Kinds) -> dict[str, Kinds]:
    """Give the properties that can be asked of a media file."""
    names = {name for kind in kinds for name in _PROPERTIES.get(kind, ())}
    return {name: frozenset({_PLAIN[MEDIA_PROPERTIES[name]]}) for name in sorted(names)}


def output_kinds(gives: str) -> dict[str, Kinds]:
    """Give what can be asked of a step by what it gives."""
    if gives == "text":
        return {"text": frozenset({"text"})}
    if gives not in _PROPERTIES:
        return {}
    items = {"items": frozenset({"images"})} if gives == "image" else {}
    return {"media": frozenset({gives}), **items, **media_kinds(frozenset({gives}))}


@cache
def field_kinds(kind: type[msgspec.Struct], name: str) -> Kinds:
    """Give the kinds of values that a field of an input takes."""
    if name in FIELD_MEDIA:
        return frozenset({FIELD_MEDIA[name]})
    return frozenset(_kinds(_hints(kind)[name]))


def check_literal(kind: type[msgspec.Struct], name: str, value: Any, parameter: Parameter | None) -> None:
    """Hold a value that stands for itself against its field, and the model's limits on it. Raises Wrong."""
    if value is None:
        return
    if name in FIELD_MEDIA:
        raise Wrong(f"a reference to {FIELD_MEDIA[name]}, such as $input.{name}", shown(value))
    try:
        converted = msgspec.convert(value, _hints(kind)[name])
        check = field_check(name, parameter) if parameter is not None else None
        if check is not None:
            check(converted)
    except ValueError as error:
        raise Wrong("", f"{shown(value)}: {error}") from None
    except InvalidRequest as error:
        raise Wrong("what the step's model takes", f"{shown(value)}: {error}") from None


def own_kinds(parameter: Parameter) -> Kinds:
    """Give the kinds of values that a field of one model alone takes."""
    return frozenset({_OWN.get(parameter.type, "other")})


def check_own(name: str, parameter: Parameter, value: Any) -> None:
    """Hold a value that stands for itself against the declaration of a field of one model alone. Raises Wrong."""
    try:
        check_extra(compile_vendor({name: parameter}), {name: value})
    except InvalidRequest as error:
        raise Wrong("what the step's model takes", f"{shown(value)}: {error}") from None


@cache
def _hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _kinds(hint: Any) -> Iterator[str]:
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _kinds(get_args(hint)[0])
    elif origin is Union or origin is types.UnionType:
        for one in get_args(hint):
            yield from _kinds(one)
    elif origin is Literal:
        yield from (_PLAIN.get(type(one), "other") for one in get_args(hint))
    elif hint is not type(None):
        yield _PLAIN.get(hint, "other")
