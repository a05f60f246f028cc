"""The ways of a request: a model's routes by order, by weight among equals, and by what is known of their pools."""

import math
import random
from collections.abc import Callable, Sequence

import msgspec

from gateway.catalog.model import Model, Snapshot
from gateway.contract.history import ServiceTimes
from gateway.routing.estimate import Estimates
from gateway.routing.health import Health
from gateway.routing.lanes import Lane, Lanes, all_lanes, no_way_left, prepare
from gateway.routing.narrow import Narrowing, narrow, one_upstream
from gateway.routing.outlook import Outlook


class Routes:
    """Chooses ways in the catalog as it stands at each call."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        draw: random.Random,
        outlook: Outlook | None = None,
        health: Health | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._draw = draw
        self.outlook = outlook or Outlook()
        self.health = health or Health()
        self.estimates = Estimates(self.outlook)
        self._known: dict[str, Lanes] = {}
        self._known_of: Snapshot | None = None
        self._known_at = -1

    def ways(self, model: Model, narrowing: Narrowing | None = None) -> Sequence[Lane]:
        """Give the ways of a request of `model`, the best first; at least one.

        Left out are pools without a live worker while there is another way, and upstreams without a key. What failed
        much of late comes last. Raises Unavailable where none is left (`upstream_not_configured`, `no_route`), and
        InvalidRequest where the caller's wishes leave none (`no_way_left`).
        """
        lanes = self.lanes(model) if narrowing is None else self.narrowed(model, narrowing)
        if lanes.single:
            return lanes.single
        if lanes.error is not None:
            raise lanes.error()
        drawn = self._by_health(model, [lane for tier in lanes.tiers for lane in self._drawn(tier)])
        return drawn[:1] if narrowing is not None and narrowing.single else drawn

    def lanes(self, model: Model) -> Lanes:
        """Give the lanes of a model before any draw; prepared once for a snapshot and a sample."""
        snapshot = self._snapshot()
        if snapshot is not self._known_of or self._known_at != self.outlook.version:
            self._known, self._known_of, self._known_at = {}, snapshot, self.outlook.version
        lanes = self._known.get(model.name)
        if lanes is None:
            lanes = self._known[model.name] = prepare(model, all_lanes(model, snapshot.pools), self.outlook)
        return lanes

    def narrowed(self, model: Model, narrowing: Narrowing) -> Lanes:
        """Give the lanes that a caller's wishes leave."""
        there = all_lanes(model, self._snapshot().pools)
        left = narrow(narrowing, there, lambda lane, name: self.latency_ms(model, lane, name))
        if there and not left:
            return Lanes((), (), no_way_left)
        if narrowing.single:
            left = [one_upstream(model, lane, narrowing, self.outlook.serves, self._draw.random) for lane in left]
        return prepare(model, left, self.outlook)

    def latency_ms(self, model: Model, lane: Lane, upstream: str) -> float:
        """Say how long a lane takes for a request of a model, or an upstream in it; infinity where nobody knows."""
        if upstream:
            told = self.outlook.upstream(lane.pool.name, upstream)
            return told.latency_ms if told is not None and told.latency_ms else math.inf
        eta = self.estimates.newcomer(lane.pool.name, model.name)
        return math.inf if eta is None else eta.finish.p50 * 1000

    def serves(self, model: Model) -> bool:
        """Say whether a model can be run now, and need not wait for a worker or a key."""
        lanes = self.lanes(model)
        return lanes.error is None and any(lane.stand != "idle" for tier in lanes.tiers for lane in tier)

    def soonest_s(self, model: Model) -> float:
        """Give the time in which the quickest lane of a model would finish a newcomer; infinity where nobody knows."""
        times = []
        for tier in self.lanes(model).tiers:
            for lane in tier:
                own = self.latency_ms(model, lane, "")
                upstreams = [self.latency_ms(model, lane, name) for name in lane.upstreams]
                times.append(own if own < math.inf else min(upstreams, default=math.inf))
        return min(times, default=math.inf) / 1000

    def times(self, model: Model) -> ServiceTimes | None:
        """Give the service times of a model where it ran most of late; None without a history."""
        told = [self.estimates.own(route.pool, model.name) for route in model.routes]
        return max((times for times in told if times is not None), key=lambda times: times.ends, default=None)

    def throughput(self, model: Model) -> float:
        """Give the tokens, or else the answers, that one request of a model gets in a second; 0 where nobody knows."""
        lanes = [lane for tier in self.lanes(model).tiers for lane in tier]
        told = [self.estimates.own(lane.pool.name, model.name) for lane in lanes]
        return max((times.units_per_s for times in told if times is not None), default=0.0)

    def _by_health(self, model: Model, lanes: list[Lane]) -> list[Lane]:
        """Put last what fails; its breaker lets one request at a time find out whether it serves again."""
        if not self.health.tripped:
            return lanes
        judged = [
            lane
            if self.health.usable(model.name, lane.pool.name)
            else msgspec.structs.replace(lane, stand="tripped" if lane.stand == "open" else lane.stand)
            for lane in lanes
        ]
        return sorted(judged, key=lambda lane: lane.stand != "open")

    def _drawn(self, tier: tuple[Lane, ...]) -> Sequence[Lane]:
        """Draw an order by weight, without putting back: P. Efraimidis and P. Spirakis (2006), keys u ** (1 / w)."""
        if len(tier) == 1:
            return tier
        return sorted(tier, key=lambda lane: self._draw.random() ** (1 / lane.weight), reverse=True)
