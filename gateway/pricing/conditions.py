"""Conditions of price rows: for which requests a row counts, by the traits that are pinned at admission."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

Trait = str | int | float | bool
"""The value of a parameter that a price depends on, as its caller gave it or its model's default."""

Traits = Mapping[str, Trait]


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, rename={"values": "is", "least": "from"}):
    """What one trait must be: any of `values`, or a number from `least` on and below `below`."""

    parameter: str
    values: tuple[Trait, ...] = ()
    least: int | float | None = None
    """Inclusive; None for no bound."""
    below: int | float | None = None
    """Exclusive; None for no bound."""

    def holds(self, traits: Traits) -> bool:
        """Say whether it holds; never where the request does not have the trait."""
        value = traits.get(self.parameter)
        if value is None:
            return False
        if self.values:
            return value in self.values
        if isinstance(value, str | bool):
            return False
        return (self.least is None or value >= self.least) and (self.below is None or value < self.below)

    @property
    def plain(self) -> Any:
        """As it stands in a catalog: a value, a list of values, or bounds."""
        if self.values:
            return self.values[0] if len(self.values) == 1 else list(self.values)
        bounds = {"from": self.least, "below": self.below}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    @property
    def text(self) -> str:
        """In words: `resolution 720p`, `seconds from 5, below 10`."""
        if self.values:
            return f"{self.parameter} {' or '.join(trait_text(value) for value in self.values)}"
        bounds = [f"{name} {trait_text(bound)}" for name, bound in self.plain.items()]
        return f"{self.parameter} {', '.join(bounds)}"


def when_text(conditions: tuple[Condition, ...]) -> str:
    """Write the conditions of a row in words; empty for none."""
    return " and ".join(condition.text for condition in conditions)


def when_plain(conditions: tuple[Condition, ...]) -> dict[str, Any]:
    """Write the conditions of a row as they stand in a catalog, by parameter."""
    return {condition.parameter: condition.plain for condition in conditions}


def trait_text(value: Trait) -> str:
    """Write a trait for people: numbers without an exponent, true and false as in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(Decimal(str(value)).normalize(), "f") if isinstance(value, int | float) else value
