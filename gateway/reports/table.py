"""A usage report as it is answered: rows and their total."""

from datetime import date, datetime

import msgspec
from msgspec import UNSET, UnsetType

from gateway.contract.states import Outcome
from gateway.contract.tasks import Task
from gateway.money import usd_text
from gateway.reports.query import Dimension

MEASURES = (
    "requests",
    "charge_nanos",
    "latency_us",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "characters",
    "images",
    "pixels",
    "steps",
    "audio_ms",
    "video_ms",
)
"""What is summed, in the order of the columns. `latency_us` sums all phases of all requests."""


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
}
"""Which columns each dimension fills."""


def add_up(rows: list[UsageRow]) -> UsageRow:
    """Add up rows, exactly."""
    sums = {name: sum(getattr(row, name) for row in rows) for name in MEASURES}
    return UsageRow(**sums, charge_usd=usd_text(sums["charge_nanos"]))
