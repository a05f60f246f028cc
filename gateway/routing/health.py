"""How well pools of our own serve, by the ends that this gateway hears: a breaker for each model in a pool."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.contract.states import Reason

WINDOW_S = 30.0
"""For how long an end counts."""
MOST_SEEN = 200
"""The ends that are remembered of a model in a pool, the latest."""
LEAST_SEEN = 5
"""Fewer ends say nothing."""
ERROR_RATE = 0.5
"""At this share of faults the breaker opens."""
OPEN_S = 5.0
"""How long it stays open the first time; twice as long after each trial that fails."""
MOST_OPEN_S = 60.0
TRIAL_S = 30.0
"""How long a trial may take, before another is let through."""

FAULTS: frozenset[Reason] = frozenset({
    "engine_error", "engine_lost", "worker_lost", "upstream_error", "upstream_timeout", "upstream_limited",
})  # fmt: skip
"""The reasons that speak against who served; a caller's input, deadline or leaving does not."""


@dataclass(slots=True)
class _Breaker:
    ends: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=MOST_SEEN))
    """When, and whether it was a fault."""
    until_s: float = 0.0
    """While open: when a trial may go through; 0 while closed."""
    pause_s: float = OPEN_S
    trial: bool = False
    """Whether a trial is under way: the next end decides."""


class Health:
    """The breakers of one gateway. Closed, open for a while, then half open: one trial decides."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._breakers: dict[tuple[str, str], _Breaker] = {}
        self.tripped: set[tuple[str, str]] = set()
        """The `(model, pool)` whose breakers are not closed."""

    def ended(self, model: str, pool: str, reason: Reason) -> None:
        """Note the end of an attempt of a model in a pool."""
        fault = reason in FAULTS
        breaker = self._breakers.get((model, pool))
        if breaker is None:
            if not fault:
                return  # nothing has ever been wrong there: what costs nothing is said of it
            breaker = self._breakers[model, pool] = _Breaker()
        now_s = self._clock()
        breaker.ends.append((now_s, fault))
        if breaker.trial:
            self._judge_trial((model, pool), breaker, fault, now_s)
        elif not breaker.until_s and fault and self._rate(breaker, now_s) >= ERROR_RATE:
            breaker.until_s = now_s + breaker.pause_s
            self.tripped.add((model, pool))

    def usable(self, model: str, pool: str) -> bool:
        """Say whether a request may go there first. Where a trial is due, the one who asks makes it."""
        if (model, pool) not in self.tripped:
            return True
        breaker, now_s = self._breakers[model, pool], self._clock()
        if now_s < breaker.until_s:
            return False
        breaker.until_s, breaker.trial = now_s + TRIAL_S, True
        return True

    def error_rate(self, model: str, pool: str) -> float:
        """Give the share of faults among the ends of late; 0 where too few have been heard."""
        breaker = self._breakers.get((model, pool))
        return self._rate(breaker, self._clock()) if breaker is not None else 0.0

    def _judge_trial(self, key: tuple[str, str], breaker: _Breaker, fault: bool, now_s: float) -> None:
        if fault:
            breaker.trial = False
            breaker.pause_s = min(2 * breaker.pause_s, MOST_OPEN_S)
            breaker.until_s = now_s + breaker.pause_s
        else:
            self.tripped.discard(key)
            del self._breakers[key]

    @staticmethod
    def _rate(breaker: _Breaker, now_s: float) -> float:
        while breaker.ends and breaker.ends[0][0] < now_s - WINDOW_S:
            breaker.ends.popleft()
        seen = len(breaker.ends)
        return sum(fault for _, fault in breaker.ends) / seen if seen >= LEAST_SEEN else 0.0
