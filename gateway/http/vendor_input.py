"""From the input of a vendor's client to the native one: names by the model's routes first, then by the tables.

What is left over keeps its name, and is refused by it where the model does not take it. Nothing is decided here about
what a model may be asked: the step `resolve` does.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_args

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.contract.inputs import INPUT_TYPES, MEDIA_FIELDS
from gateway.contract.pools import ProtocolName
from gateway.contract.tasks import Task
from gateway.http.vendor_names import NAMES

MOST_DEPTH = 4
"""Of the names of nested fields, such as `parameters.duration`."""
TIERS = {"480p": 480, "540p": 540, "720p": 720, "768p": 768, "1080p": 1080}
"""Names of sizes by the shorter side."""

_SIDES = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_SHAPE = re.compile(r"([1-9][0-9]{0,2}):([1-9][0-9]{0,2})")


class Wire(msgspec.Struct, frozen=True):
    """What a name on the wire means: a field, in a form that the route gives it."""

    field: str
    form: str


def native_input(snapshot: Snapshot, protocol: ProtocolName, model: Model, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give an input in the names of the model's own tasks and parameters."""
    taken: dict[str, Any] = {}
    rest = dict(given)
    for name, wires in wire_names(snapshot, protocol, model).items():
        value = None if name in model.parameters else _popped(rest, name)
        if value is not None:
            wire = _meant(model, wires, value)
            _put(taken, wire.field, _FORMS.get(wire.form, _same)(value))
    known = _known(model)
    for name, value in rest.items():
        field = name if name in known else _field_of(model, name, known, taken.keys() | rest.keys())
        if field == "size" and name != "size":
            value = _sized(taken.get("size"), value, model)
            taken.pop("size", None)
        _put(taken, field, value)
    if "width" in taken and "height" in taken and "size" in known and "width" not in known:
        _put(taken, "size", f"{taken.pop('width')}x{taken.pop('height')}")
    if "chat" in model.tasks and "messages" not in taken:
        taken = _conversation(taken)
    return {name: _fitted(model, name, value) for name, value in taken.items()}


def wire_names(snapshot: Snapshot, protocol: ProtocolName, model: Model) -> dict[str, list[Wire]]:
    """Give what the model's routes to upstreams of a protocol call its fields, by the names there.

    A parameter of the model is called by its own name, whatever else a route sends under that.
    """
    found: dict[str, list[Wire]] = {}
    for route in model.routes:
        upstream = snapshot.upstreams.get(route.upstream)
        if upstream is not None and upstream.protocol == protocol:
            for field, words in route.fields.items():
                name, _, form = words.partition(" as ")
                if form.strip() != "none":  # the name of what is not sent is ours
                    found.setdefault(name.strip(), []).append(Wire(field, form.strip()))
    return found


def _meant(model: Model, wires: list[Wire], value: Any) -> Wire:
    """Say which of the fields that go under one name there is meant: several values are those of a list."""
    lists = {field for task in model.tasks for field, kind in kinds_of(task).items() if kind == "list"}
    several = isinstance(value, list) and len(value) > 1
    return next((wire for wire in wires if (wire.field in lists) == several), wires[0])


def _put(taken: dict[str, Any], field: str, value: Any) -> None:
    taken.setdefault(field, value)


def _popped(rest: dict[str, Any], name: str) -> Any:
    """Take the value of a dotted name out of nested objects, and those that are empty then with it."""
    head, _, below = name.partition(".")
    if not below:
        return rest.pop(head, None)
    inner = rest.get(head)
    if not isinstance(inner, dict) or name.count(".") >= MOST_DEPTH:
        return None
    inner = dict(inner)
    value = _popped(inner, below)
    if value is not None:
        rest[head] = inner
        if not inner:
            del rest[head]
    return value


def _field_of(model: Model, name: str, known: frozenset[str], given: set[str]) -> str:
    """Look a vendor's name up in the tables of the model's tasks; where none knows it, it stays what it is."""
    for task in model.tasks:
        field = NAMES[task].get(name)
        if field is not None and field in known and (field not in given or field == "size"):
            return field
    return name


def _known(model: Model) -> frozenset[str]:
    names = {name for task in model.tasks for name in INPUT_TYPES[task].__struct_fields__}
    return frozenset(names - {"extra"} | model.parameters.keys())


def _same(value: Any) -> Any:
    return value


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _thousandth(value: Any) -> Any:
    number = _number(value)
    return number / 1000 if isinstance(number, int | float) else value


_FORMS: Mapping[str, Callable[[Any], Any]] = {"list": _first, "milliseconds": _thousandth}
"""How the forms that a route gives its fields are undone; those that are not here fit as they are, or by their type."""


def _fitted(model: Model, name: str, value: Any) -> Any:
    """Give a value in the type of its field: vendors write numbers as text, and one picture as a list of one."""
    kinds = [kinds_of(task).get(name, "") for task in model.tasks]
    if name == "size" and isinstance(value, str) and "size" in kinds:
        return _sized(None, value, model)
    if isinstance(value, str) and "number" in kinds:
        return _number(value)
    if name in _pictures(model):
        if isinstance(value, str) and "list" in kinds and "text" not in kinds:
            return [value]
        if "list" not in kinds:
            return _first(value)
    if name in ("output_format", "response_format") and isinstance(value, str):
        return _FORMATS.get(value.lower(), value.lower().partition("_")[0])
    return value


_FORMATS = {"jpg": "jpeg"}
"""What formats are called elsewhere; `mp3_44100_128` names the format before its rates."""


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip().removesuffix("s")
    try:
        number = float(text)
    except ValueError:
        return value
    return int(number) if number.is_integer() and math.isfinite(number) else number if math.isfinite(number) else value


@cache
def kinds_of(task: Task) -> dict[str, str]:
    """Say of the fields of a task what they hold, as far as it matters here: `number`, `list`, `size` or `text`."""
    found = {}
    for field in msgspec.structs.fields(INPUT_TYPES[task]):
        text = str(field.type)
        options = [str(option) for option in get_args(field.type)] or [text]
        if field.name == "size":
            found[field.name] = "size"
        elif any("list" in option for option in options):
            found[field.name] = "list"
        elif "int" in text or "float" in text:
            found[field.name] = "number" if "str" not in text else "text"
        else:
            found[field.name] = "text"
    return found


@cache
def _media_of(tasks: tuple[Task, ...]) -> frozenset[str]:
    return frozenset(name for task in tasks for name in MEDIA_FIELDS[INPUT_TYPES[task]])


def _pictures(model: Model) -> frozenset[str]:
    return _media_of(model.tasks)


def _sized(known: str | None, value: Any, model: Model) -> Any:
    """Read a size: pixels with an x or an asterisk, a ratio such as `16:9`, or a name such as `720p`.

    A ratio and a name may come one after the other: `known` is what the first was read as.
    """
    if isinstance(value, dict) and value.keys() == {"width", "height"}:
        return f"{value['width']}x{value['height']}"
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    plain = text.replace("*", "x")
    if _SIDES.fullmatch(plain):
        return plain
    shape = _SHAPE.fullmatch(text)
    if shape is not None:
        return _shaped(int(shape[1]) / int(shape[2]), _shorter(known) or _usual(model), model)
    if text in TIERS:
        return _shaped(_ratio(known) or _ratio(_own_size(model)) or 16 / 9, TIERS[text], model)
    return value


def _shaped(ratio: float, shorter: int, model: Model) -> str:
    """Give the size of a ratio: one of those that the model names, else one of whole steps of eight pixels."""
    parameter = model.parameters.get("size")
    named = [size for size in (parameter.choices if parameter else ()) if isinstance(size, str) and _ratio(size)]
    fitting = [size for size in named if math.isclose(_ratio(size) or 0, ratio, rel_tol=0.02)]
    if fitting:
        return str(min(fitting, key=lambda size: abs((_shorter(size) or 0) - shorter)))
    longer = round(shorter * max(ratio, 1 / ratio) / 8) * 8
    return f"{longer}x{shorter}" if ratio >= 1 else f"{shorter}x{longer}"


def _sides(size: str | None) -> tuple[int, int] | None:
    found = _SIDES.fullmatch(size or "")
    return (int(found[1]), int(found[2])) if found else None


def _ratio(size: str | None) -> float | None:
    sides = _sides(size)
    return sides[0] / sides[1] if sides else None


def _shorter(size: str | None) -> int | None:
    sides = _sides(size)
    return min(sides) if sides else None


def _own_size(model: Model) -> str | None:
    parameter = model.parameters.get("size")
    return parameter.default if parameter is not None and isinstance(parameter.default, str) else None


def _usual(model: Model) -> int:
    """Give the shorter side where nobody names one: that of the model's own size, else what is usual."""
    return _shorter(_own_size(model)) or (720 if any("video" in task for task in model.tasks) else 1024)


def _conversation(taken: dict[str, Any]) -> dict[str, Any]:
    """Make messages of a prompt, as text models take it there, with the system's word before it."""
    if not isinstance(taken.get("prompt"), str):
        return taken
    rest = dict(taken)
    said = [{"role": "user", "content": rest.pop("prompt")}]
    system = rest.pop("system_prompt", None)
    if isinstance(system, str) and system:
        said.insert(0, {"role": "system", "content": system})
    if isinstance(rest.get("stop"), str):
        rest["stop"] = [part for part in rest["stop"].split(",") if part][:16] or None
    return {name: value for name, value in rest.items() if value is not None} | {"messages": said}


def raw_of(value: Mapping[str, Any]) -> msgspec.Raw:
    """Write an input for the step that reads it. Numbers of any length are kept, as they came."""
    return msgspec.Raw(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())
