"""When a request will start and finish, from its pool's own history.

A pool runs c requests at once, each for a time of mean m and deviation s. A request with `ahead` others before it and
`free` places starts at once where ahead < free; else with the d-th departure, d = ahead + 1 - free. Departures from c
busy places are c renewal processes together, whose count in a time t is about normal, with mean c t / m and variance
c t s**2 / m**3 (D. R. Cox, Renewal Theory, 1962, 4.5). So the d-th comes after a time that is about normal, too:

    mean       (d - (1 - (s / m)**2) / (2 c)) m / c        since the places are amid their work when one asks
    deviation  sqrt(d) s / c

The finish adds the service time of the model itself. Its median is added to the mean of the start; its distance from
median to p90 and that of the start are added as independent deviations are, by their squares.
"""

import math
from collections.abc import Mapping

import msgspec

from gateway.contract.history import PoolHistory, ServiceTimes
from gateway.routing.outlook import Outlook

Z90 = 1.2815515655446004
"""The 0.9 quantile of the standard normal distribution."""


class Spread(msgspec.Struct, frozen=True):
    """A time from now in seconds: as likely as not it is over by `p50`, and nine times of ten by `p90`."""

    p50: float
    p90: float


class Eta(msgspec.Struct, frozen=True):
    """When a request that waits will start and finish."""

    start: Spread
    finish: Spread


class Estimates:
    """The histories of all pools as a gateway read them last."""

    def __init__(self, outlook: Outlook) -> None:
        self.outlook = outlook
        self._histories: Mapping[str, PoolHistory] = {}
        self._leased: dict[str, int] = {}
        self._waiting: dict[str, int] = {}

    def sampled(self, histories: Mapping[str, PoolHistory]) -> None:
        """Note the histories of all pools."""
        self._histories = histories

    def depth(self, pool: str, waiting: int, leased: int) -> None:
        """Note how many requests wait in a pool, and how many it runs."""
        self._waiting[pool], self._leased[pool] = waiting, leased

    def newcomer(self, pool: str, model: str) -> Eta | None:
        """Estimate for a request that would come last of all; None where that model has no history there."""
        return self.eta(pool, model, self._waiting.get(pool, 0)) if self.own(pool, model) is not None else None

    def of(self, pool: str, model: str) -> ServiceTimes | None:
        """Give the service times of a model in a pool; those of the whole pool where the model has none yet."""
        history = self._histories.get(pool)
        return None if history is None else history.models.get(model, history.all)

    def own(self, pool: str, model: str) -> ServiceTimes | None:
        """Give the service times of a model in a pool, and of no other."""
        history = self._histories.get(pool)
        return None if history is None else history.models.get(model)

    def free(self, pool: str) -> int:
        """Count the places that stood free in a pool when it was looked at last."""
        return max(self.outlook.capacity(pool) - self._leased.get(pool, 0), 0)

    def eta(self, pool: str, model: str, ahead: int, leased: int | None = None) -> Eta | None:
        """Estimate for a request of `model` with `ahead` others before it; None without history or live workers.

        `leased` says how many the pool runs now, where that was looked up; else the last sample counts.
        """
        times, history = self.of(pool, model), self._histories.get(pool)
        places = self.outlook.capacity(pool)
        if times is None or history is None or not places:
            return None
        free = self.free(pool) if leased is None else max(places - leased, 0)
        return estimate(history.all, times, places, ahead + 1 - free)


def estimate(pool: ServiceTimes, model: ServiceTimes, places: int, departures: int) -> Eta:
    """Estimate start and finish after so many departures of a pool with so many places, all of them busy."""
    start_ms = deviation_ms = 0.0
    if departures > 0:
        mean, spread = pool.mean_ms, pool.deviation_ms
        variation = min(spread / mean, 1.0) if mean > 0 else 1.0
        start_ms = max(departures - (1 - variation * variation) / (2 * places), 0.0) * mean / places
        deviation_ms = math.sqrt(departures) * spread / places
    finish_ms = start_ms + model.p50_ms
    late_ms = math.hypot(Z90 * deviation_ms, max(model.p90_ms - model.p50_ms, 0.0))
    return Eta(
        Spread(_seconds(start_ms), _seconds(start_ms + Z90 * deviation_ms)),
        Spread(_seconds(finish_ms), _seconds(finish_ms + late_ms)),
    )


def _seconds(ms: float) -> float:
    return round(ms / 1000, 3)
