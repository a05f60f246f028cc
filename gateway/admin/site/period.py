"""The time that a page is about, as its address says: a range of whole hours, and the one it is compared with.

?range=24h                      a preset: 24h (the default), 7d, 30d, 90d, month
?from=2026-11-01&to=2026-11-08  two dates or instants, in the zone
?tz=Europe/Berlin               how instants are read and written; UTC without it
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from math import ceil
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from gateway.errors import InvalidRequest
from gateway.reports.ranges import HOUR, MAX_SPAN, Range

Preset = Literal["24h", "7d", "30d", "90d", "month", "own"]
PRESETS: Mapping[str, tuple[str, timedelta]] = {
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
    "90d": ("Last 90 days", timedelta(days=90)),
}
WEEK = timedelta(weeks=1)
COMMON_ZONES = (
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Africa/Johannesburg",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
)


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A range, the same hours of an earlier week, and the time zone they are told in."""

    range: Range
    before: Range
    """As long as `range`, earlier by whole weeks: its hours have the same days of the week."""
    zone_name: str
    preset: str
    now: datetime

    @property
    def zone(self) -> ZoneInfo:
        """The zone that instants are written in."""
        return ZoneInfo(self.zone_name)

    @property
    def span(self) -> timedelta:
        """How long the range is."""
        return self.range.to_at - self.range.from_at

    @property
    def is_daily(self) -> bool:
        """Whether charts of it have a point for each day; else for each hour."""
        return self.span > timedelta(days=8)

    @property
    def title(self) -> str:
        """The range in words."""
        if self.preset == "month":
            return f"{self.local(self.range.from_at):%B %Y}"
        if self.preset in PRESETS:
            return PRESETS[self.preset][0]
        return f"{self.local(self.range.from_at):%-d %b %Y %H:%M} to {self.local(self.range.to_at):%-d %b %Y %H:%M}"

    @property
    def before_title(self) -> str:
        """In words, what it is compared with."""
        weeks = (self.range.from_at - self.before.from_at) // WEEK
        return "the same hours last week" if weeks == 1 else f"the same range {weeks} weeks earlier"

    def local(self, at: datetime) -> datetime:
        """Give an instant in the zone."""
        return at.astimezone(self.zone)


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    """Give the names of all time zones."""
    return frozenset(available_timezones()) | {"UTC"}


def read_period(query: Mapping[str, str], now: datetime | None = None) -> Period:
    """Read the period that an address names. Raises InvalidRequest naming the parameter."""
    now = now or datetime.now(UTC)
    zone_name = query.get("tz") or "UTC"
    if zone_name not in zones():
        raise InvalidRequest("'tz' is the name of a time zone, such as Europe/Berlin.", param="tz")
    zone = ZoneInfo(zone_name)
    preset = query.get("range") or ("own" if query.get("from") or query.get("to") else "24h")
    if preset == "month":
        chosen = _this_month(now, zone)
    elif preset in PRESETS:
        to_at = _ceiling(now)
        chosen = Range(to_at - PRESETS[preset][1], to_at)
    elif preset == "own":
        chosen = _own(query, now, zone)
    else:
        raise InvalidRequest(f"'range' is one of {', '.join(PRESETS)} and month.", param="range")
    back = WEEK * ceil((chosen.to_at - chosen.from_at) / WEEK)
    before = Range(chosen.from_at - back, chosen.to_at - back)
    return Period(range=chosen, before=before, zone_name=zone_name, preset=preset, now=now)


def _this_month(now: datetime, zone: ZoneInfo) -> Range:
    first = now.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Range(_floor(first.astimezone(UTC)), _ceiling(now))


def _own(query: Mapping[str, str], now: datetime, zone: ZoneInfo) -> Range:
    to_text = query.get("to", "")
    to_at = _ceiling(_instant(to_text, "to", zone, ends=True) if to_text else now)
    from_text = query.get("from", "")
    from_at = _floor(_instant(from_text, "from", zone)) if from_text else to_at - timedelta(days=1)
    if from_at >= to_at:
        raise InvalidRequest("'from' must lie before 'to'.", param="from")
    if to_at - from_at > MAX_SPAN:
        raise InvalidRequest(f"A page covers at most {MAX_SPAN.days} days.", param="from")
    return Range(from_at, to_at)


def _instant(text: str, param: str, zone: ZoneInfo, *, ends: bool = False) -> datetime:
    """Read a date or an instant; a date that a range ends with is in it."""
    try:
        if len(text) == 10:
            day = date.fromisoformat(text) + timedelta(days=1 if ends else 0)
            value = datetime(day.year, day.month, day.day, tzinfo=zone)
        else:
            value = datetime.fromisoformat(text)
            value = value.replace(tzinfo=zone) if value.tzinfo is None else value
        value = value.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"'{param}' is a date or an instant, such as 2026-11-21.", param=param) from None
    if not 2000 <= value.year <= 9000:
        raise InvalidRequest(f"'{param}' lies between the years 2000 and 9000.", param=param)
    return value


def _floor(value: datetime) -> datetime:
    return value.replace(minute=0, second=0, microsecond=0)


def _ceiling(value: datetime) -> datetime:
    floor = _floor(value)
    return floor if floor == value else floor + HOUR
