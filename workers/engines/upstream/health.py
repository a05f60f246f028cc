"""What recent traffic says of an upstream: error rate, latency, circuit breaker, and a budget for second tries.

One `Health` for each upstream and one for each model there. A breaker opens after failures in a row, or when most of a
window failed; it stays open for a time that doubles; then one trial goes through, and decides.

The budget is for trying an upstream a second time. Another upstream that is well gets a first try instead, which its
own breaker watches: so a dead upstream costs its callers no failure, and nobody a storm.
"""

import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Literal

import msgspec

WINDOW_S = 60.0
MOST_SAMPLES = 200
ROW = 5
"""Failures in a row that open a breaker."""
LEAST_SAMPLES = 20
WORST_RATE = 0.5
"""The error rate over a window of at least `LEAST_SAMPLES` that opens one."""
FIRST_OPEN_S = 2.0
LONGEST_OPEN_S = 60.0
BUDGET_S = 10.0
BUDGET_SHARE = 0.2
BUDGET_FLOOR = 3
"""Second tries at an upstream, over `BUDGET_S`: a share of its first tries, and a few for quiet times."""

BreakerState = Literal["closed", "open", "half_open"]
Clock = Callable[[], float]


class _Sample(msgspec.Struct, frozen=True):
    at_s: float
    ok: bool
    latency_s: float


class Health:
    """The health of one upstream, or of one model there."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[_Sample] = deque(maxlen=MOST_SAMPLES)
        self._row = 0
        self._open_until = 0.0
        self._open_s = 0.0
        self._limited_until = 0.0
        self._trial = False

    @property
    def state(self) -> BreakerState:
        """How the breaker stands. Half open: its time is over, and a trial may go or is on its way."""
        now = self._clock()
        if now < self._open_until or now < self._limited_until:
            return "open"
        return "half_open" if self._open_s else "closed"

    @property
    def limited_s(self) -> float:
        """For how long the upstream has asked to be left alone."""
        return max(0.0, self._limited_until - self._clock())

    @property
    def wait_s(self) -> float:
        """How long until it may be tried again; 0 where it may be now."""
        return max(0.0, max(self._open_until, self._limited_until) - self._clock())

    def may_try(self) -> bool:
        """Say whether a call may go out now."""
        state = self.state
        return state == "closed" or (state == "half_open" and not self._trial)

    def begin(self) -> bool:
        """Note that a call goes out; True where it is the trial of a breaker that is half open."""
        if self.state != "half_open":
            return False
        self._trial = True
        return True

    def succeeded(self, latency_s: float, *, trial: bool) -> None:
        """Note a success; that of the trial closes the breaker."""
        self._add(True, latency_s)
        self._row = 0
        if trial:
            self._trial = False
            self._open_s = 0.0
            self._samples.clear()

    def failed(self, *, trial: bool, retry_after_s: float | None = None) -> None:
        """Note a failure, and how long the upstream wants to be left alone."""
        self._add(False, 0.0)
        self._row += 1
        if retry_after_s is not None:
            self._limited_until = max(self._limited_until, self._clock() + retry_after_s)
        if trial:
            self._trial = False
            self._open(2 * self._open_s)
        elif not self._open_s and (self._row >= ROW or self._is_bad()):
            self._open(FIRST_OPEN_S)

    def left(self, *, trial: bool) -> None:
        """Note that a call ended without a word about the upstream: it was cancelled, or its input was refused."""
        if trial:
            self._trial = False

    def answered(self, *, trial: bool) -> None:
        """Note that the upstream answered as it should, though with a refusal: alive, and no measure of its pace."""
        self._row = 0
        if trial:
            self._trial = False
            self._open_s = 0.0

    def _open(self, seconds: float) -> None:
        self._open_s = min(max(seconds, FIRST_OPEN_S), LONGEST_OPEN_S)
        self._open_until = self._clock() + self._open_s
        self._row = 0

    def _is_bad(self) -> bool:
        return len(self._samples) >= LEAST_SAMPLES and self.error_rate >= WORST_RATE

    def _add(self, ok: bool, latency_s: float) -> None:
        self._samples.append(_Sample(self._clock(), ok, latency_s))

    def _recent(self) -> deque[_Sample]:
        since = self._clock() - WINDOW_S
        while self._samples and self._samples[0].at_s < since:
            self._samples.popleft()
        return self._samples

    @property
    def error_rate(self) -> float:
        """The share of recent attempts that failed, from 0 to 1; 0 where there were none."""
        recent = self._recent()
        return sum(not sample.ok for sample in recent) / len(recent) if recent else 0.0

    @property
    def latency_ms(self) -> int:
        """The median of recent attempts that succeeded, in milliseconds; 0 where there were none."""
        found = [sample.latency_s for sample in self._recent() if sample.ok]
        return round(median(found) * 1000) if found else 0


class RetryBudget:
    """How many second tries an upstream gets: a share of its first ones, so that trouble is not multiplied."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._firsts: deque[float] = deque(maxlen=100_000)
        self._extras: deque[float] = deque(maxlen=100_000)

    def first(self) -> None:
        """Note a first try."""
        self._firsts.append(self._clock())

    def spend(self) -> bool:
        """Take a second try from the budget; False where it is used up."""
        since = self._clock() - BUDGET_S
        for tries in (self._firsts, self._extras):
            while tries and tries[0] < since:
                tries.popleft()
        if len(self._extras) >= BUDGET_FLOOR + BUDGET_SHARE * len(self._firsts):
            return False
        self._extras.append(self._clock())
        return True
