"""A workflow: a small graph of other models, as it stands in a catalog entry's options and as its worker runs it.

A step is a request to another model, or one of the `LOCAL_INPUTS` that the worker does itself. Its input is a template:
a text that is one reference (`$input.text`, `$speech.media`) becomes what it refers to, `${story.text}` inside a text
becomes text, and anything else stands for itself. Of several references between bars the first that is there counts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from gateway.contract.inputs.fields import InputStruct, MediaSource
from gateway.contract.tasks import Task

MOST_STEPS = 20
INPUT = "input"
"""The name by which templates refer to the workflow's own input."""

Local = Literal["join", "trim", "frames-to-video"]
LOCALS: tuple[Local, ...] = get_args(Local)

MEDIA_PROPERTIES: dict[str, type] = {
    "duration_s": float,
    "duration_ms": int,
    "width": int,
    "height": int,
    "size": str,
    "frames": int,
}
"""What can be asked of a media file, `$step.width` or `$input.image.width`; one that is not known counts as absent."""
OUTPUT_FIELDS = ("media", "items", "text", *MEDIA_PROPERTIES)
"""What can be asked of a step: its file, all its files, its text, and the properties of its file."""

STEP_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_REFERENCE = r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*){1,2}"
_WHOLE = re.compile(rf"\${_REFERENCE}(?: *\| *\${_REFERENCE})*")
_INSIDE = re.compile(rf"\$\$|\$\{{({_REFERENCE}(?: *\| *{_REFERENCE})*)\}}")
_MEANT = re.compile(r"\$[A-Za-z{]")


class JoinInput(InputStruct, frozen=True, kw_only=True):
    """The input of `join`: pictures and a sound, made into one video as long as the sound."""

    video: MediaSource
    audio: MediaSource


class TrimInput(InputStruct, frozen=True, kw_only=True):
    """The input of `trim`: a video or a sound, and the part of it that is kept."""

    video: MediaSource | None = None
    audio: MediaSource | None = None
    start_s: Annotated[float, Meta(ge=0)] = 0.0
    seconds: Annotated[float, Meta(gt=0)]


class FramesInput(InputStruct, frozen=True, kw_only=True):
    """The input of `frames-to-video`: pictures, one after the other."""

    images: Annotated[list[MediaSource], Meta(min_length=1)]
    fps: Annotated[float, Meta(gt=0, le=120)] = 16.0


LOCAL_INPUTS: dict[Local, type[InputStruct]] = {"join": JoinInput, "trim": TrimInput, "frames-to-video": FramesInput}


class WorkflowStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step: a `model` and its `task`, or what the worker is to `do` itself, and the template of its input."""

    model: str = ""
    task: Task | None = None
    """Needed where the model does several."""
    do: Local | None = None
    input: dict[str, Any] = {}
    weight: Annotated[float, Meta(ge=0, le=1000)] | None = None
    """Its share of the progress; one, and for what the worker does itself nothing, where it is left out."""
    pools: dict[str, int] = {}
    """Where its model is served, with weights: never in a catalog, filled in by gateways for the worker."""


class WorkflowOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a workflow: its steps by name, and the one whose output is the workflow's."""

    steps: Annotated[dict[str, WorkflowStep], Meta(min_length=1, max_length=MOST_STEPS)]
    output: str


class Reference(msgspec.Struct, frozen=True):
    """Something in the workflow's input, or in what a step gave."""

    source: str
    """`input`, or the name of a step."""
    path: tuple[str, ...]

    def __str__(self) -> str:
        """Write it as templates do."""
        return "$" + ".".join((self.source, *self.path))


class Lookup(msgspec.Struct, frozen=True):
    """The first of some references that is there."""

    among: tuple[Reference, ...]


class TextOf(msgspec.Struct, frozen=True):
    """A text put together."""

    parts: tuple[str | Lookup, ...]


def parse_template(value: Any) -> Any:
    """Read a template: every text that refers to something becomes a Lookup or a TextOf. Raises ValueError."""
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, list):
        return [parse_template(item) for item in value]
    if isinstance(value, dict):
        return {key: parse_template(item) for key, item in value.items()}
    return value


def lookups_in(template: Any) -> Iterator[Lookup]:
    """Yield every lookup of a template that has been read."""
    if isinstance(template, Lookup):
        yield template
    elif isinstance(template, TextOf):
        yield from (part for part in template.parts if isinstance(part, Lookup))
    elif isinstance(template, list | dict):
        for item in template.values() if isinstance(template, dict) else template:
            yield from lookups_in(item)


def steps_in(template: Any) -> set[str]:
    """Name the steps that a template refers to."""
    found = {one.source for lookup in lookups_in(template) for one in lookup.among}
    return found - {INPUT}


def needed_by(name: str, needs: Mapping[str, set[str]]) -> set[str]:
    """Name a step and all that it needs, at any remove. Raises ValueError where steps need each other in a circle."""
    found: set[str] = set()
    _visit(name, needs, (), found)
    return found


def _visit(name: str, needs: Mapping[str, set[str]], above: tuple[str, ...], found: set[str]) -> None:
    if name in above:
        raise ValueError(" -> ".join((*above[above.index(name) :], name)))
    if name in found:
        return
    for other in sorted(needs.get(name, ())):
        _visit(other, needs, (*above, name), found)
    found.add(name)


def _parse_text(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return _lookup(text.replace("$", ""))
    parts: list[str | Lookup] = []
    at = 0
    for match in _INSIDE.finditer(text):
        parts += (_plain(text[at : match.start()]), "$" if match[1] is None else _lookup(match[1]))
        at = match.end()
    parts.append(_plain(text[at:]))
    if all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    return TextOf(tuple(part for part in parts if part))


def _plain(text: str) -> str:
    """Pass a text that refers to nothing. Raises ValueError for one that seems to."""
    meant = _MEANT.search(text)
    if meant is not None:
        raise ValueError(text[meant.start() :])
    return text


def _lookup(text: str) -> Lookup:
    named = (one.strip().split(".") for one in text.split("|"))
    return Lookup(tuple(Reference(source, tuple(path)) for source, *path in named))
