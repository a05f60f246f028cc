"""A usage report as it is answered: rows and their total."""

from datetime import date, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from gateway.contract.states import Outcome
from gateway.contract.tasks import Task
from gateway.contract.units import UNIT_NAMES
from gateway.money import usd_text
from gateway.reports.scope import Dimension, Sums

MEASURES = (
    "requests",
    "charge_nanos",
    "charge_usd",
    "latency_us",
    *UNIT_NAMES,
    "errors",
    "latency_p50_us",
    "latency_p95_us",
)
"""What is told of each group, in the order of the columns. `latency_us` sums all phases of all requests."""

COST_MEASURES = ("cost_nanos", "cost_usd", "margin_nanos", "uncosted", "gpu_us")
"""What operators are told as well."""


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one group, or of all. Dimensions that were not asked for are absent."""

    day: date | UnsetType = UNSET
    hour: datetime | UnsetType = UNSET
    account_id: int | UnsetType = UNSET
    account_name: str | UnsetType = UNSET
    key_id: int | UnsetType = UNSET
    key_name: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    task: Task | UnsetType = UNSET
    outcome: Outcome | UnsetType = UNSET
    route: str | UnsetType = UNSET
    requests: int = 0
    charge_nanos: int = 0
    charge_usd: str = "0"
    """`charge_nanos` as an exact decimal of US dollars."""
    latency_us: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    characters: int = 0
    images: int = 0
    pixels: int = 0
    steps: int = 0
    audio_ms: int = 0
    video_ms: int = 0
    errors: int = 0
    """Requests that failed or expired."""
    latency_p50_us: int | None = None
    """Estimated from buckets; None without requests."""
    latency_p95_us: int | None = None
    cost_nanos: int | UnsetType = UNSET
    """What requests cost the operator, where that is known; `uncosted` counts the others."""
    cost_usd: str | UnsetType = UNSET
    margin_nanos: int | UnsetType = UNSET
    uncosted: int | UnsetType = UNSET
    gpu_us: int | UnsetType = UNSET


class UsageTable(msgspec.Struct, frozen=True, kw_only=True, rename={"from_at": "from", "to_at": "to"}):
    """A whole report. `from` and `to` are the hours it really covers."""

    from_at: datetime
    to_at: datetime
    group_by: tuple[Dimension, ...]
    rows: list[UsageRow]
    total: UsageRow


COLUMNS: dict[Dimension, tuple[str, ...]] = {
    "day": ("day",),
    "hour": ("hour",),
    "account": ("account_id", "account_name"),
    "key": ("key_id", "key_name"),
    "model": ("model",),
    "task": ("task",),
    "outcome": ("outcome",),
    "route": ("route",),
}
"""Which columns each dimension fills."""


def measures_of(sums: Sums, *, with_costs: bool) -> dict[str, Any]:
    """Give the fields of a row that are measures."""
    told: dict[str, Any] = {
        "requests": sums.requests,
        "charge_nanos": sums.charge_nanos,
        "charge_usd": usd_text(sums.charge_nanos),
        "latency_us": sums.latency_us,
        "errors": sums.errors,
        "latency_p50_us": sums.p50_us,
        "latency_p95_us": sums.p95_us,
        **{name: getattr(sums.units, name) for name in UNIT_NAMES},
    }
    if with_costs:
        told |= {
            "cost_nanos": sums.cost_nanos,
            "cost_usd": usd_text(sums.cost_nanos),
            "margin_nanos": sums.margin_nanos,
            "uncosted": sums.uncosted,
            "gpu_us": sums.gpu_us,
        }
    return told
