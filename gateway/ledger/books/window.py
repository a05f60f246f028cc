"""Stretches of time that are gone through row by row, so that no snapshot of Postgres has to last for all of them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)
AFTER_ALL = datetime(9999, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Window(msgspec.Struct, frozen=True):
    """What ended from an instant on to before another; both are whole hours."""

    from_at: datetime
    to_at: datetime

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """The parameters of the statements that go row by row."""
        return self.from_at, self.to_at


ALL_TIME = Window(BEFORE_ALL, AFTER_ALL)


def windows_of(since: datetime | None, oldest: datetime | None, now: datetime) -> Sequence[Window]:
    """Cut the time from `since` on (None: from the oldest row on) into days. The first and the last have no end.

    What is older than the oldest, or lies in the future, can only be there by a fault, and is gone through too.
    """
    begin = since or oldest or now
    cuts = [since or BEFORE_ALL]
    at = begin.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    while at < now:
        if at > cuts[0]:
            cuts.append(at)
        at += DAY
    return [Window(one, other) for one, other in zip(cuts, [*cuts[1:], AFTER_ALL], strict=True)]
