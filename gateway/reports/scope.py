"""What a figure is about: of whom, of what, over which range; and the figures themselves."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Literal, get_args

import msgspec

from gateway.contract.units import UNIT_NAMES, Units
from gateway.reports.latency import percentile_us
from gateway.reports.ranges import Range

Dimension = Literal["day", "hour", "account", "key", "model", "task", "outcome", "route"]
"""What figures can be grouped by. A route is an upstream's name, else a pool's."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

Order = Literal["charge", "requests", "errors", "cost", "margin", "-charge", "-requests", "-errors", "-cost", "-margin"]
"""What rows are ordered by; with `-` the largest first."""

ORDERS: tuple[Order, ...] = get_args(Order)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests count. None does not filter; several fields hold together."""

    account_id: int | None = None
    key_id: int | None = None
    model: str | None = None
    """By its name."""
    task: int | None = None
    """Its position in `TASKS`."""
    outcome: int | None = None
    """Its position in `OUTCOMES`."""
    route: str | None = None


EVERYTHING = Scope()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Figures to be read in one statement."""

    range: Range
    scope: Scope = EVERYTHING
    group_by: tuple[Dimension, ...] = ()
    zone_name: str = "UTC"
    """Where days begin."""
    units: bool = True
    """Whether units are summed."""
    latencies: bool = True
    """Whether latencies are counted, and times summed."""
    among: tuple[Dimension, tuple[int | str, ...]] | None = None
    """A dimension of `group_by` of which only these values are groups of their own; the others are one, None."""
    order: Order | None = None
    """None orders by the dimensions."""
    limit: int | None = None


NO_UNITS = Units()
"""Zeros, shared by all sums that have none: they are only read."""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over requests. The one definition of each figure of the dashboard, the usage pages and the reports."""

    requests: int = 0
    errors: int = 0
    """Requests that failed or expired; who cancels makes no error."""
    charge_nanos: int = 0
    """What was charged: spend to who pays, revenue to who runs this."""
    cost_nanos: int = 0
    """What it cost the operator, where that is known."""
    uncosted: int = 0
    """Requests of which nobody knows the cost: they count as zero in `cost_nanos`."""
    gpu_us: int = 0
    latency_us: int = 0
    """All phases of all requests. Both are zero where the question left latencies out."""
    latency_counts: tuple[int, ...] = ()
    """Requests by bucket of their latency (`latency.py`); empty where the question left them out."""
    units: Units = msgspec.field(default_factory=lambda: NO_UNITS)
    """Zeros where the question left them out."""

    @property
    def margin_nanos(self) -> int:
        """What is left of the charges after the known costs."""
        return self.charge_nanos - self.cost_nanos

    @property
    def p50_us(self) -> int | None:
        """The latency that half of the requests did not exceed."""
        return percentile_us(self.latency_counts, 0.5)

    @property
    def p95_us(self) -> int | None:
        """The latency that 95 of 100 requests did not exceed."""
        return percentile_us(self.latency_counts, 0.95)


NOTHING = Sums()

_ADDED = ("requests", "errors", "charge_nanos", "cost_nanos", "uncosted", "gpu_us", "latency_us")


def add_up(many: Sequence[Sums]) -> Sums:
    """Add sums up, exactly."""
    counted = [each.latency_counts for each in many if each.latency_counts]
    units = [[getattr(each.units, name) for name in UNIT_NAMES] for each in many if each.units is not NO_UNITS]
    return Sums(
        **{name: sum([getattr(each, name) for each in many]) for name in _ADDED},
        latency_counts=tuple(map(sum, zip(*counted, strict=True))),
        units=Units(*map(sum, zip(*units, strict=True))) if units else NO_UNITS,
    )


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one group. Dimensions that were not asked for are None."""

    day: date | None = None
    hour: datetime | None = None
    account_id: int | None = None
    account: str | None = None
    key_id: int | None = None
    key: str | None = None
    key_prefix: str | None = None
    model_id: int | None = None
    model: str | None = None
    task: str | None = None
    outcome: str | None = None
    route: str | None = None
    sums: Sums

    def value(self, dimension: Dimension) -> int | str | None:
        """Give what identifies the group in a dimension that is no time."""
        field = {"account": "account_id", "key": "key_id", "model": "model_id"}.get(dimension, dimension)
        found: int | str | None = getattr(self, field)
        return found

    def label(self, dimension: Dimension) -> str:
        """Give what a reader knows the group by; of a nameless key its prefix."""
        if dimension == "key":
            return self.key or self.key_prefix or str(self.key_id)
        return str(getattr(self, dimension))
