"""Ranges of time in reports: whole hours of UTC."""

from datetime import UTC, datetime, timedelta

import msgspec

from gateway.errors import InvalidRequest

HOUR = timedelta(hours=1)
DEFAULT_SPAN = timedelta(days=30)
MAX_SPAN = timedelta(days=400)


class Range(msgspec.Struct, frozen=True):
    """From a whole hour on, up to and without another."""

    from_at: datetime
    to_at: datetime


def read_range(from_text: str | None, to_text: str | None, now: datetime) -> Range:
    """Read `from` and `to`, widened to whole hours. Raises InvalidRequest naming the parameter.

    Without `to`, up to and with the present hour; without `from`, the 30 days before `to`.
    """
    to_at = _ceiling(_instant(to_text, "to") if to_text else now)
    from_at = _floor(_instant(from_text, "from")) if from_text else to_at - DEFAULT_SPAN
    if from_at >= to_at:
        raise InvalidRequest("'from' must lie before 'to'.", param="from")
    if to_at - from_at > MAX_SPAN:
        raise InvalidRequest(f"A report covers at most {MAX_SPAN.days} days.", param="from")
    return Range(from_at, to_at)


def _instant(text: str, param: str) -> datetime:
    try:
        value = datetime.fromisoformat(text)
        value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"'{param}' must be a date or an instant as ISO 8601, such as 2026-11-21 or 2026-11-21T10:00:00Z "
            "(UTC where it names no zone; '+' is written %2B in an address).",
            param=param,
        ) from None
    if not 2000 <= value.year <= 9000:
        raise InvalidRequest(f"'{param}' must lie between the years 2000 and 9000.", param=param)
    return value


def _floor(value: datetime) -> datetime:
    return value.replace(minute=0, second=0, microsecond=0)


def _ceiling(value: datetime) -> datetime:
    floor = _floor(value)
    return floor if floor == value else floor + HOUR
