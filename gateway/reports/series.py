"""Sums for each hour or local day of a range, in lines of their largest groups."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from gateway.reports.ranges import HOUR, Range
from gateway.reports.scope import NOTHING, Dimension, Group, Question, Sums, add_up

Step = Literal["hour", "day"]
OTHER = "Other"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one group over the times of a series."""

    label: str
    value: int | str | None
    """What identifies the group; None for all others together."""
    sums: tuple[Sums, ...]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Sums for each hour or day of a range, without gaps."""

    at: tuple[datetime, ...]
    """When each hour or day begins."""
    total: tuple[Sums, ...]
    lines: tuple[Line, ...] = ()
    """The groups with the largest charge, and at the end all others together."""


def series_of(
    asked: Question, step: Step, found: Sequence[Group], by: Dimension | None, largest: Sequence[Group]
) -> Series:
    """Put groups into their places: those of `largest` into lines of their own, all others into one."""
    zone = ZoneInfo(asked.zone_name)
    at = times(asked.range, step, zone)
    places: dict[date | datetime, int] = {_place(each, step, zone): place for place, each in enumerate(at)}
    parts: list[list[Sums]] = [[] for _ in at]
    named = [each.value(by) for each in largest] if by else []
    lines: dict[int | str | None, list[Sums]] = {value: [NOTHING] * len(at) for value in [*named, None]}
    for group in found:
        key = group.hour if step == "hour" else group.day
        assert key is not None
        place = places[key]
        parts[place].append(group.sums)
        if by:
            lines[group.value(by)][place] = group.sums
    labels = {each.value(by): each.label(by) for each in largest} if by else {}
    shown = [value for value in lines if value is not None or (by and any(each.requests for each in lines[None]))]
    return Series(
        at=at,
        total=tuple(each[0] if len(each) == 1 else add_up(each) if each else NOTHING for each in parts),
        lines=tuple(
            Line(label=labels.get(value, OTHER), value=value, sums=tuple(lines[value])) for value in shown if by
        ),
    )


def times(during: Range, step: Step, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Give the begins of all hours or local days of a range; the first day may begin before it."""
    if step == "hour":
        return tuple(during.from_at + HOUR * place for place in range((during.to_at - during.from_at) // HOUR))
    first = during.from_at.astimezone(zone).date()
    last = (during.to_at - timedelta(microseconds=1)).astimezone(zone).date()
    days = [first + timedelta(days=place) for place in range((last - first).days + 1)]
    return tuple(datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC) for day in days)


def _place(at: datetime, step: Step, zone: ZoneInfo) -> date | datetime:
    return at if step == "hour" else at.astimezone(zone).date()
