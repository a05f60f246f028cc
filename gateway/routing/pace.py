"""How fast pools serve, from the ends that a settler sees: sliding histograms of service times.

A histogram has logarithmic buckets, four to an octave, so a quantile is right within 9%. It slides by fading: each
second its counts are multiplied by 2 ** -min(ends / 100, 1 / 60), so half of what it says is of the last 100 ends or of
the last minute, whichever is longer. A pool that makes one film in ten minutes is remembered for a day, one that
answers a thousand calls a second for a minute; a pool without ends keeps what it has.
"""

import math

from gateway.contract.events import Ended
from gateway.contract.history import PoolHistory, ServiceTimes
from gateway.contract.phases import Phases

PER_OCTAVE = 4
HALF_LIFE_ENDS = 100
HALF_LIFE_S = 60
LEAST_WEIGHT = 1e-3
"""Fainter buckets are forgotten."""


class ServiceHistogram:
    """Service times in milliseconds, and the units that came in them."""

    def __init__(self) -> None:
        self._buckets: dict[int, float] = {}
        self._weight = self._sum_ms = self._squares = self._units = 0.0
        self._fresh = 0

    def add(self, ms: float, units: float) -> None:
        """Count one end."""
        bucket = math.floor(math.log2(max(ms, 0.001)) * PER_OCTAVE)
        self._buckets[bucket] = self._buckets.get(bucket, 0.0) + 1
        self._weight += 1
        self._sum_ms += ms
        self._squares += ms * ms
        self._units += units
        self._fresh += 1

    def fade(self) -> None:
        """Let a second pass."""
        if not self._fresh:
            return
        factor = 2 ** -min(self._fresh / HALF_LIFE_ENDS, 1 / HALF_LIFE_S)
        self._fresh = 0
        self._buckets = {at: count * factor for at, count in self._buckets.items() if count * factor > LEAST_WEIGHT}
        self._weight *= factor
        self._sum_ms *= factor
        self._squares *= factor
        self._units *= factor

    def quantile_ms(self, share: float) -> float:
        """Give the time below which this share of the ends stayed, by a straight line within a bucket's logarithm."""
        left = share * sum(self._buckets.values())
        for bucket in sorted(self._buckets):
            count = self._buckets[bucket]
            if left <= count:
                return float(2 ** ((bucket + left / count) / PER_OCTAVE))
            left -= count
        return float(2 ** ((max(self._buckets) + 1) / PER_OCTAVE))

    def told(self) -> ServiceTimes | None:
        """Sum it up; None before the first end."""
        if not self._buckets:
            return None
        mean = self._sum_ms / self._weight
        return ServiceTimes(
            ends=round(self._weight, 3),
            mean_ms=round(mean, 3),
            deviation_ms=round(math.sqrt(max(self._squares / self._weight - mean * mean, 0.0)), 3),
            p50_ms=round(self.quantile_ms(0.5), 3),
            p90_ms=round(self.quantile_ms(0.9), 3),
            units_per_s=round(self._units / max(self._sum_ms / 1000, 1e-6), 3),
        )


class Paces:
    """The histograms of all pools, and of each model in them, as one settler sees their ends."""

    def __init__(self) -> None:
        self._pools: dict[str, ServiceHistogram] = {}
        self._models: dict[str, dict[str, ServiceHistogram]] = {}
        self._changed: set[str] = set()

    def ended(self, pool: str, model: str, end: Ended) -> None:
        """Note an end that a worker gave. `model` is empty where it is not known."""
        if not end.worker:
            return  # nobody served it
        ms = service_ms(end.phases)
        units = end.units.output_tokens or 1
        self._pools.setdefault(pool, ServiceHistogram()).add(ms, units)
        if model and end.outcome == "succeeded":
            self._models.setdefault(pool, {}).setdefault(model, ServiceHistogram()).add(ms, units)
        self._changed.add(pool)

    def histories(self) -> dict[str, PoolHistory]:
        """Sum up the pools that have had ends since the last time, and let a second pass."""
        told: dict[str, PoolHistory] = {}
        for pool in self._changed:
            whole = self._pools[pool].told()
            models = self._models.get(pool, {})
            if whole is not None:
                told[pool] = PoolHistory(
                    whole, {name: times for name, one in models.items() if (times := one.told()) is not None}
                )
            self._pools[pool].fade()
            for one in models.values():
                one.fade()
        self._changed.clear()
        return told


def service_ms(phases: Phases) -> float:
    """Give the time from being taken to the end: all phases but the waiting."""
    return (
        phases.load_us
        + phases.preprocess_us
        + phases.transfer_us
        + phases.forward_us
        + phases.postprocess_us
        + phases.store_us
    ) / 1000
