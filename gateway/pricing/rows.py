"""Which rows of a price count for a request: of each unit the first whose conditions hold."""

from collections.abc import Sequence

from gateway.pricing.conditions import Traits, trait_text
from gateway.pricing.price import PriceComponent


class NotSold(ValueError):
    """A unit has prices under conditions only, and none of them holds: the request has no price and may not run."""

    def __init__(self, unit: str, sold: Sequence[PriceComponent], traits: Traits) -> None:
        super().__init__(f"no price per {unit} for {_asked(sold, traits)}")
        self.unit = unit
        self.sold = tuple(row.words for row in sold)
        """The conditions under which it is sold, in words."""
        self.parameter = sold[0].when[0].parameter
        """What decides first."""
        self.asked = _asked(sold, traits)
        """The traits that were asked for, in words."""


def is_conditional(components: Sequence[PriceComponent]) -> bool:
    """Say whether any row has a condition."""
    return any(component.when for component in components)


def rows_for(components: tuple[PriceComponent, ...], traits: Traits) -> tuple[PriceComponent, ...]:
    """Give the rows that count, in their order. Raises NotSold where a unit has none left."""
    if not is_conditional(components):
        return components
    chosen: dict[str, PriceComponent] = {}
    for row in components:
        if row.unit not in chosen and all(condition.holds(traits) for condition in row.when):
            chosen[row.unit] = row
    for row in components:
        if row.unit not in chosen:
            raise NotSold(row.unit, [other for other in components if other.unit == row.unit], traits)
    return tuple(chosen.values())


def _asked(sold: Sequence[PriceComponent], traits: Traits) -> str:
    names = dict.fromkeys(condition.parameter for row in sold for condition in row.when)
    return " and ".join(f"{name} {trait_text(traits[name]) if name in traits else '(none)'}" for name in names)
