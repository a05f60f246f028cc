"""Where the figures of a range come from: coarse tables for closed hours, `usage_rollup` for the rest."""

from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from gateway.reports.ranges import Range
from gateway.reports.scope import Question

Source = Literal[
    "usage_rollup", "rollup_hour_model", "rollup_hour_key", "rollup_day", "rollup_day_model", "rollup_day_key"
]
DAILY: tuple[Source, ...] = ("rollup_day", "rollup_day_model", "rollup_day_key")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOON = timedelta(hours=12)
"""When the sums of a day (UTC) are taken to be: in the local day that has most of it."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a range, and the table that has it."""

    source: Source
    range: Range
    moved: tuple[datetime, ...] = ()
    """Where not empty: hours that are taken out of the local day of their day's noon, and counted in their own."""


def pieces(question: Question, closed_through: datetime) -> list[Piece]:
    """Cut a range into parts that do not overlap, each with the smallest table that can answer the question."""
    from_at, to_at = question.range.from_at, question.range.to_at
    closed = min(max(closed_through, from_at), to_at)
    hourly, daily = _tables(question)
    found: list[Piece] = []
    days = _days(question, from_at, closed)
    if days is None:
        found.append(Piece(hourly, Range(from_at, closed)))
    else:
        found.append(Piece(hourly, Range(from_at, days.from_at)))
        found.append(Piece(daily, days))
        if "day" in question.group_by and (moved := _moved(days, ZoneInfo(question.zone_name))):
            found.append(Piece(hourly, days, moved))
        found.append(Piece(hourly, Range(days.to_at, closed)))
    found.append(Piece("usage_rollup", Range(closed, to_at)))
    return [piece for piece in found if piece.range.from_at < piece.range.to_at] or [
        Piece("usage_rollup", question.range)
    ]


def _tables(question: Question) -> tuple[Source, Source]:
    """Choose the smallest table of hours, and that of days, that tell apart what the question does."""
    scope, groups = question.scope, set(question.group_by)
    if not (groups & {"account", "key"} or scope.account_id is not None or scope.key_id is not None):
        return "rollup_hour_model", "rollup_day_model"
    named = (scope.model, scope.task, scope.route)
    if groups & {"model", "task", "route"} or any(each is not None for each in named):
        return "usage_rollup", "rollup_day"
    return "rollup_hour_key", "rollup_day_key"


def _days(question: Question, from_at: datetime, closed: datetime) -> Range | None:
    """Give the whole days (UTC) that are closed, where the question does not look into them."""
    if "hour" in question.group_by:
        return None
    first, end = _next_midnight(from_at), _midnight(closed)
    return Range(first, end) if first < end else None


def _moved(days: Range, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Name the hours of whole days (UTC) that lie in another local day than their day's noon does."""
    found: list[datetime] = []
    for number in range((days.to_at - days.from_at) // DAY):
        begun = days.from_at + DAY * number
        local = (begun + NOON).astimezone(zone).date()
        hours = (begun + HOUR * hour for hour in range(24))
        found += [hour for hour in hours if hour.astimezone(zone).date() != local]
    return tuple(found)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _next_midnight(at: datetime) -> datetime:
    begun = _midnight(at)
    return begun if begun == at else begun + DAY
