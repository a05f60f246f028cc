"""Whether a gateway can serve calls, and why not."""

import time
from collections.abc import Callable

STALE_S = 5.0
"""A snapshot older than this means that Postgres is away."""


class Readiness:
    """Gathers what a gateway needs to serve calls."""

    def __init__(self, *, refreshed_at: Callable[[], float], queue_away: Callable[[], bool]) -> None:
        self._refreshed_at = refreshed_at
        self._queue_away = queue_away
        self.draining = False

    def reasons(self) -> list[str]:
        """List why calls cannot be served; empty when they can."""
        found = []
        if self.draining:
            found.append("draining: this gateway is stopping")
        if time.monotonic() - self._refreshed_at() > STALE_S:
            found.append("postgres: no answer for more than 5 s")
        if self._queue_away():
            found.append("redis: no answer")
        return found
