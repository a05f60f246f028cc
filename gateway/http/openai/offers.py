"""From the fields of one body to the tasks that they may mean: an edit, a blend or an upscaling come by one address."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from gateway.contract.inputs import INPUT_TYPES, Input
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest
from gateway.http.errors import from_decoding

Offers = tuple[tuple[Task, Input], ...]


def given_in(body: msgspec.Struct, tasks: Iterable[Task]) -> dict[str, Any]:
    """Take from a body what a caller gave of the inputs of some tasks."""
    names = {name for task in tasks for name in INPUT_TYPES[task].__struct_fields__}
    found = {name: getattr(body, name) for name in body.__struct_fields__ if name in names}
    return {name: value for name, value in found.items() if value is not None}


def offers_of(given: dict[str, Any], tasks: Sequence[Task], called: dict[str, str] | None = None) -> Offers:
    """Make the input of every task that takes all that was given and needs nothing more, in the order of `tasks`.

    `called` says how callers know fields of another name. Raises InvalidRequest naming the field that is
    missing, or that does not go with the others.
    """
    return fitting([(task, given) for task in tasks], called)


def fitting(readings: Sequence[tuple[Task, dict[str, Any]]], called: dict[str, str] | None = None) -> Offers:
    """Make the inputs of those tasks whose fields are just what is given for them. Raises as `offers_of`."""
    fits = [
        (task, given)
        for task, given in readings
        if given.keys() <= set(INPUT_TYPES[task].__struct_fields__) and needed(task) <= given.keys()
    ]
    if fits:
        try:
            return tuple((task, msgspec.convert(given, INPUT_TYPES[task])) for task, given in fits)
        except msgspec.ValidationError as error:
            raise from_decoding(error) from None
    task, given = min(readings, key=lambda reading: tuple(map(len, reversed(_trouble(*reading)))))
    missing, odd = _trouble(task, given)
    name = (odd or missing)[0]
    param = (called or {}).get(name, name)
    raise InvalidRequest(
        f"{param} does not go together with the other fields." if odd else f"{param} is needed.", param=param
    )


def _trouble(task: Task, given: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Name the fields that a task needs and does not have, and those that it has and does not take."""
    known = INPUT_TYPES[task].__struct_fields__
    return sorted(needed(task) - given.keys()), [name for name in given if name not in known]


@cache
def needed(task: Task) -> frozenset[str]:
    """Name the fields without which a task's input cannot be."""
    return frozenset(field.name for field in msgspec.structs.fields(INPUT_TYPES[task]) if field.required)
