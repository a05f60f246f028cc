"""An example request under two prices, line by line: a typical one of the model's task."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from gateway.admin.pages.models.differences import CHARGED, OUTCOMES
from gateway.catalog.model import Model, Sold
from gateway.catalog.typical import TYPICAL, default_rows
from gateway.contract.tasks import Task
from gateway.pricing.lines import PriceLine, price_lines
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceVersion
from gateway.pricing.rate import rate_nanos


class ExampleLine(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of the example, as it is charged now and would be."""

    unit: str
    quantity: str
    old: PriceLine | None
    new: PriceLine | None


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """The example under both prices; None where it is not for sale."""

    task: Task
    lines: tuple[ExampleLine, ...]
    old_nanos: int | None
    new_nanos: int | None


class Otherwise(msgspec.Struct, frozen=True, kw_only=True):
    """What a request costs that did not succeed, now and under the draft."""

    outcome: str
    old: str
    new: str


def otherwise_of(old: OutcomePolicy, new: OutcomePolicy) -> list[Otherwise]:
    """Say what each outcome but success costs."""
    return [
        Otherwise(outcome=words, old=CHARGED[getattr(old, name)], new=CHARGED[getattr(new, name)])
        for name, words in OUTCOMES.items()
    ]


def example_of(model: Model, old: Sold, new: Sold, task: str = "") -> Example:
    """Price a typical request now and under the draft, for a caller who leaves all parameters out."""
    chosen = next((each for each in model.tasks if each == task), model.tasks[0])
    units = TYPICAL[chosen]
    versions = [_version(model, sold, chosen) for sold in (old, new)]
    lines = [price_lines(version, units) if version else () for version in versions]
    before, after = ({line.unit: line for line in each} for each in lines)
    named = list(dict.fromkeys([*before, *after]))
    totals = [rate_nanos(version, units) if version else None for version in versions]
    return Example(
        task=chosen,
        lines=tuple(_line(name, before.get(name), after.get(name)) for name in named),
        old_nanos=totals[0],
        new_nanos=totals[1],
    )


def _version(model: Model, sold: Sold, task: Task) -> PriceVersion | None:
    if not sold.rows:
        return None
    version = PriceVersion(0, model.id, sold.rows, datetime.now(UTC), minimum_nanos=sold.minimum_nanos)
    return msgspec.structs.replace(version, components=default_rows(model, version, task))


def _line(name: str, old: PriceLine | None, new: PriceLine | None) -> ExampleLine:
    return ExampleLine(unit=name.replace("_", " "), quantity=_quantity((new, old)), old=old, new=new)


def _quantity(lines: Iterable[PriceLine | None]) -> str:
    return next(line.quantity for line in lines if line is not None)
