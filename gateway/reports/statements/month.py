"""A month of a time zone."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from gateway.errors import InvalidRequest, NotFound

_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])")


class Month(msgspec.Struct, frozen=True):
    """A month, and the zone in which it begins and ends."""

    year: int
    month: int
    zone_name: str = "UTC"

    @property
    def name(self) -> str:
        """How an address names it: 2026-11."""
        return f"{self.year}-{self.month:02}"

    @property
    def zone(self) -> ZoneInfo:
        """Its zone."""
        return ZoneInfo(self.zone_name)

    @property
    def from_at(self) -> datetime:
        """When it begins."""
        return datetime(self.year, self.month, 1, tzinfo=self.zone).astimezone(UTC)

    @property
    def to_at(self) -> datetime:
        """When the next one begins."""
        return self.next.from_at

    @property
    def next(self) -> "Month":
        """The month after it."""
        return Month(self.year + self.month // 12, self.month % 12 + 1, self.zone_name)

    @property
    def before(self) -> "Month":
        """The month before it."""
        return Month(self.year - (self.month == 1), (self.month - 2) % 12 + 1, self.zone_name)


def read_month(text: str, zone_name: str = "UTC") -> Month:
    """Read a month. Raises NotFound where it is none, InvalidRequest where the zone is none."""
    found = _MONTH.fullmatch(text)
    if found is None:
        raise NotFound("There is no such month; a statement's address ends like 2026-11.")
    if zone_name != "UTC" and zone_name not in available_timezones():
        raise InvalidRequest("'tz' is the name of a time zone, such as Europe/Berlin.", param="tz")
    return Month(int(found[1]), int(found[2]), zone_name)


def month_of(at: datetime, zone_name: str = "UTC") -> Month:
    """Give the month that an instant lies in."""
    local = at.astimezone(ZoneInfo(zone_name))
    return Month(local.year, local.month, zone_name)
