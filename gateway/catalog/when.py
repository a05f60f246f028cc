"""Conditions of price rows as they stand in a catalog: `when: {quality: [hd, high], seconds: {from: 5, below: 10}}`."""

from collections.abc import Mapping
from typing import Any

from gateway.pricing.conditions import Condition, Trait

MOST_CONDITIONS = 8
MOST_VALUES = 64
EXAMPLE = "`{resolution: 720p}`, `{quality: [hd, high]}` or `{seconds: {from: 5, below: 10}}`"


def read_when(plain: Any) -> tuple[Condition, ...]:
    """Read the conditions of a row. Raises ValueError with what was expected."""
    if plain is None:
        return ()
    if not isinstance(plain, Mapping) or not plain or len(plain) > MOST_CONDITIONS:
        raise ValueError(f"up to {MOST_CONDITIONS} conditions by parameter, such as {EXAMPLE}")
    return tuple(_condition(str(name), value) for name, value in plain.items())


def _condition(name: str, value: Any) -> Condition:
    if isinstance(value, Mapping):
        return _bounds(name, value)
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if (
        not values
        or len(values) > MOST_VALUES
        or not all(isinstance(each, str | int | float | bool) for each in values)
    ):
        raise ValueError(f"for {name}: a value, up to {MOST_VALUES} values, or bounds `from` and `below`")
    if len(set(values)) < len(values):
        raise ValueError(f"for {name}: each value once")
    return Condition(name, values=values)


def _bounds(name: str, value: Mapping[str, Any]) -> Condition:
    if not value or value.keys() - {"from", "below"}:
        raise ValueError(f"for {name}: bounds `from` (inclusive), `below` (exclusive), or both")
    least, below = (_number(name, value.get(bound)) for bound in ("from", "below"))
    if least is not None and below is not None and least >= below:
        raise ValueError(f"for {name}: a `from` that is less than `below`")
    return Condition(name, least=least, below=below)


def _number(name: str, value: Any) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, bool | str) or not isinstance(value, int | float) or value != value:
        raise ValueError(f"for {name}: numbers as bounds")
    return value


def shadowed(row: tuple[Condition, ...], others: list[tuple[Condition, ...]]) -> bool:
    """Say whether a row can never count, since one before it always does: one without conditions, or the same ones."""
    wanted = frozenset(_key(condition) for condition in row)
    return any(frozenset(_key(condition) for condition in other) <= wanted for other in others)


def _key(condition: Condition) -> tuple[str, frozenset[Trait], object, object]:
    return condition.parameter, frozenset(condition.values), condition.least, condition.below
