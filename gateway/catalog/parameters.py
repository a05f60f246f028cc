"""A model's parameters: the limits and defaults that it sets on the fields of its tasks' inputs."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from gateway.contract.inputs import INPUT_TYPES, Input
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest, misfit

ParameterType = Literal["integer", "number", "string", "boolean", "array", "object"]

TEXT_TASKS: frozenset[Task] = frozenset({"chat", "completion", "embedding", "rerank"})
"""Those whose inputs and outputs are counted in tokens, of which a context holds so many."""

PARAMETER_TYPES: tuple[ParameterType, ...] = get_args(ParameterType)


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a model's input: its type, default and limits, tighter than the task's own."""

    type: ParameterType
    default: Any = None
    minimum: float | None = None
    """The least number; for a string or an array, the least length."""
    maximum: float | None = None
    """The largest number; for a string or an array, the greatest length."""
    choices: tuple[Any, ...] = ()
    """The only values; for an array, of its items; for an object, of its `type`."""
    required: bool = False
    """Whether a call without it is refused, where it has no default."""
    url: bool = False
    """Of a field of this model alone: whether it is an `https` address that the upstream reads, or a list of them."""
    priced: bool = False
    """Whether the price depends on it."""
    description: str = ""


@cache
def task_fields(task: Task) -> tuple[str, ...]:
    """Name the fields of a task's input. `extra` is none of them: what is in it has names of its own."""
    return tuple(name for name in INPUT_TYPES[task].__struct_fields__ if name != "extra")


Check = Callable[[Any], None]


class FieldCheck(msgspec.Struct, frozen=True):
    """What to do with one field of an input: hold it against limits, or put in the default."""

    name: str
    default: Any
    check: Check | None
    required: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """A field of an input that a model does not take, and the value that says no more than leaving it out."""

    name: str
    absent: Any
    idle: Any


Checks = dict[type[Input], tuple[FieldCheck, ...]]


def compile_checks(tasks: Iterable[Task], parameters: dict[str, Parameter]) -> Checks:
    """Prepare the checks of each task's input, once for a model. Raises ValueError where a default does not fit."""
    return {INPUT_TYPES[task]: tuple(_field_checks(task, parameters)) for task in tasks}


def _field_checks(task: Task, parameters: dict[str, Parameter]) -> Iterator[FieldCheck]:
    fields = INPUT_TYPES[task].__struct_fields__
    for name, parameter in parameters.items():
        if name in fields:
            yield FieldCheck(
                name, field_default(task, name, parameter), field_check(name, parameter), parameter.required
            )
    limit = parameters.get("max_tokens")
    if limit is not None and "max_completion_tokens" in fields and "max_completion_tokens" not in parameters:
        yield FieldCheck(
            "max_completion_tokens", None, field_check("max_completion_tokens", limit)
        )  # the same limit by its other name


Refusals = dict[type[Input], tuple[Refusal, ...]]

IDLE: dict[str, Any] = {"n": 1, "size": "auto", "quality": "auto", "background": "auto", "response_format": "mp3"}
"""What callers, and families for them, write without wanting anything: taken off where a model does not take it."""


def compile_refusals(tasks: Iterable[Task], parameters: Collection[str]) -> Refusals:
    """Name the fields that a model served by upstreams alone does not take: optional ones that it does not declare.

    Of text tasks all are taken: how tokens are drawn is the same everywhere.
    """
    return {
        INPUT_TYPES[task]: tuple(
            Refusal(field.name, None if field.default is msgspec.NODEFAULT else field.default, IDLE.get(field.name))
            for field in msgspec.structs.fields(INPUT_TYPES[task])
            if not field.required and field.name != "extra" and field.name not in parameters
        )
        for task in tasks
        if task not in TEXT_TASKS
    }


def missing(name: str) -> InvalidRequest:
    """Make the error of a call without a field that its model needs, in the words for any missing one."""
    return misfit(f"Object missing required field `{name}`")


def not_taken(name: str) -> InvalidRequest:
    """Make the error of a call with a field that its model does not take."""
    return InvalidRequest(f"This model takes no {name}. Leave it out.", code="not_supported", param=name)


def field_default(task: Task, name: str, parameter: Parameter) -> Any:
    """Give a parameter's default as the field holds it: a mapping becomes the struct. Raises ValueError."""
    return None if parameter.default is None else convert_field(task, name, parameter.default)


def convert_field(task: Task, name: str, value: object) -> Any:
    """Read a plain value as a field of a task's input. Raises ValueError where the task does not allow it."""
    return msgspec.convert(value, _hints(task)[name])


@cache
def _hints(task: Task) -> dict[str, Any]:
    """Resolve the types of a task's fields: 200 microseconds, and the same every time."""
    return get_type_hints(INPUT_TYPES[task], include_extras=True)


def field_check(name: str, parameter: Parameter) -> Check | None:
    """Make the function that raises InvalidRequest for a value outside the limits; None where there are none."""
    if parameter.minimum is None and parameter.maximum is None and not parameter.choices:
        return None
    size_of = _SIZES.get(parameter.type, _itself)

    def check(value: Any) -> None:
        if parameter.choices:
            _check_choices(name, parameter, value)
        size = size_of(value)
        if parameter.minimum is not None and size < parameter.minimum:
            raise _outside(name, parameter, f"at least {parameter.minimum:.15g}")
        if parameter.maximum is not None and size > parameter.maximum:
            raise _outside(name, parameter, f"at most {parameter.maximum:.15g}")

    return check


def _itself(value: Any) -> Any:
    return value


_SIZES: dict[ParameterType, Callable[[Any], Any]] = {
    "string": lambda value: len(value) if isinstance(value, str) else 1,  # a file that is there
    "array": lambda value: len(value) if isinstance(value, list) else 1,  # one text stands for a list of one
}


def _check_choices(name: str, parameter: Parameter, value: Any) -> None:
    if isinstance(value, msgspec.Struct):
        value = value.__struct_config__.tag
    for item in value if isinstance(value, list) else (value,):
        if item not in parameter.choices:
            allowed = ", ".join(map(str, parameter.choices))
            raise InvalidRequest(f"{name} must be one of: {allowed}.", param=name)


def _outside(name: str, parameter: Parameter, limit: str) -> InvalidRequest:
    if parameter.maximum == 0 and parameter.type in ("string", "array"):
        return not_taken(name)
    what = {"string": " characters", "array": " items"}.get(parameter.type, "")
    verb = "must have" if what else "must be"
    return InvalidRequest(f"{name} {verb} {limit}{what} for this model.", param=name)
