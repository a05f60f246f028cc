"""An input as the fields that an upstream takes: those of the task and of the model, under the upstream's names."""

from collections.abc import Callable, Mapping
from math import gcd
from typing import Any

from gateway.contract.inputs import MEDIA_FIELDS
from workers.engine import EngineError
from workers.engines.upstream.protocol import Call

SKIP = object()
"""What a form gives for a value that is not to be sent."""


def wire(
    call: Call,
    defaults: Mapping[str, str],
    *,
    media: Mapping[str, Any] | None = None,
    rest: bool = False,
) -> dict[str, Any]:
    """Give what is sent of a call's input: fields of the task, fields of the model, and what the route fixes.

    A field's name there is the target's `fields` entry, else that of `defaults`. A field with neither is not sent,
    unless `rest` says that the protocol has no names of its own; a field of the model alone (`extra`) always goes under
    its own. Files are sent as `media` gives them, by field. What the route fixes wins.
    """
    given = call.run.input
    values: dict[str, Any] = {}
    files = MEDIA_FIELDS.get(type(given), ())
    for name in given.__struct_fields__:
        if name == "extra" or name in files:
            continue
        value = getattr(given, name)
        if value is not None and value is not False:
            values[name] = value
    values.update(media or {})
    extra = given.extra or {}
    body: dict[str, Any] = {}
    mapped = call.target.fields
    for name, value in [*values.items(), *extra.items()]:
        entry = mapped.get(name) or defaults.get(name) or (name if rest or name in extra else "")
        if entry:
            put(body, entry, value)
    merge(body, call.target.fixed)
    return body


def put(body: dict[str, Any], entry: str, value: Any) -> None:
    """Put a value into a body as an entry says: `NAME`, `NAME as FORM`, or several of them with commas between.

    A name with dots lies in nested objects.
    """
    for part in entry.split(","):
        name, _, form = part.strip().partition(" as ")
        formed = FORMS[form.strip()](value) if form else value
        if formed is SKIP:
            continue
        *outer, last = name.strip().split(".")
        place = body
        for step in outer:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                raise EngineError("This model's route puts two fields in one place.")
            place = inner
        place[last] = formed


def merge(body: dict[str, Any], fixed: Mapping[str, Any]) -> None:
    """Lay what a route fixes over a body, objects inside objects."""
    for name, value in fixed.items():
        inner = body.get(name)
        if isinstance(value, Mapping) and isinstance(inner, dict):
            merge(inner, value)
        else:
            body[name] = value


def _text(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _integer(value: Any) -> Any:
    return round(float(value))


def _list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _milliseconds(value: Any) -> Any:
    return round(float(value) * 1000)


def _sides(value: Any) -> tuple[int, int] | None:
    width, _, height = str(value).partition("x")
    return (int(width), int(height)) if width.isdigit() and height.isdigit() and int(width) and int(height) else None


def _ratio(value: Any) -> Any:
    """Give `1280x720` as `16:9`; what is no size goes as it is, `auto` not at all."""
    sides = _sides(value)
    if sides is None:
        return SKIP if value == "auto" else value
    common = gcd(*sides)
    return f"{sides[0] // common}:{sides[1] // common}"


def _tier(value: Any) -> Any:
    """Give `1280x720` as `720p`, by the shorter side; what is no size goes as it is, `auto` not at all."""
    sides = _sides(value)
    if sides is None:
        return SKIP if value == "auto" else value
    return f"{min(sides)}p"


def _width(value: Any) -> Any:
    sides = _sides(value)
    return SKIP if sides is None else sides[0]


def _height(value: Any) -> Any:
    sides = _sides(value)
    return SKIP if sides is None else sides[1]


def _none(value: Any) -> Any:
    return SKIP


FORMS: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "integer": _integer,
    "list": _list,
    "milliseconds": _milliseconds,
    "ratio": _ratio,
    "tier": _tier,
    "width": _width,
    "height": _height,
    "none": _none,
}
"""What a route may make of a field."""
