"""How the time of a worker is shared among the requests that it runs at once."""

import time
from collections.abc import Callable


class Shares:
    """A clock that runs at 1/n while n requests run: what it shows between a request's begin and end is its share.

    The shares of all requests add up to the time in which the worker was busy.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._running = 0
        self._shown_ns = 0.0
        self._looked_ns = 0
        self._busy_ns = 0

    @property
    def busy_ms(self) -> int:
        """The time so far in which one request or more ran."""
        self._look()
        return self._busy_ns // 1_000_000

    def begin(self) -> float:
        """Count one more request. Answers what the clock shows, for `end`."""
        self._look()
        self._running += 1
        return self._shown_ns

    def end(self, began: float) -> int:
        """Count one request less. Answers its share in microseconds."""
        self._look()
        self._running -= 1
        return max(0, round((self._shown_ns - began) / 1000))

    def _look(self) -> None:
        now = self._clock_ns()
        if self._running:
            self._shown_ns += (now - self._looked_ns) / self._running
            self._busy_ns += now - self._looked_ns
        self._looked_ns = now
