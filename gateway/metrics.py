"""What a gateway counts, for Prometheus. Every name is documented in docs/reference/metrics.md."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from gateway.contract.pools import WorkerStatus
from gateway.queues.port import Depth

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class _Tally:
    """What was answered of one model: plain integers, since a metric of prometheus_client costs a lock an addition."""

    __slots__ = ("buckets", "charged_nanos", "total_us")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.total_us = 0
        self.charged_nanos = 0

    def add(self, total_us: int, charge_nanos: int) -> None:
        self.buckets[bisect_left(_SECONDS, total_us / 1e6)] += 1
        self.total_us += total_us
        self.charged_nanos += charge_nanos


class _Answers(Collector):
    """The answered calls, added up by model and told when a scrape asks."""

    def __init__(self) -> None:
        self._tallies: defaultdict[str, _Tally] = defaultdict(_Tally)

    def of(self, model: str) -> _Tally:
        return self._tallies[model]

    def collect(self) -> Iterator[Metric]:
        """Give three families."""
        answers = CounterMetricFamily("faregate_requests", "Calls answered by this gateway", labels=["model"])
        seconds = HistogramMetricFamily("faregate_request_seconds", "From admission to the answer", labels=["model"])
        charged = CounterMetricFamily(
            "faregate_charged_nanos", "Charges of answered calls, in 1e-9 US dollars", labels=["model"]
        )
        bounds = [*map(str, _SECONDS), "+Inf"]
        for model, tally in list(self._tallies.items()):
            up_to = list(accumulate(tally.buckets))
            answers.add_metric([model], up_to[-1])
            seconds.add_metric([model], list(zip(bounds, up_to, strict=True)), tally.total_us / 1e6)
            charged.add_metric([model], tally.charged_nanos)
        yield from (answers, seconds, charged)


class Metrics:
    """The metrics of one gateway process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answers = _Answers()
        self.registry.register(self._answers)
        self._refused = Counter("faregate_refusals", "Calls refused, by error code", ["code"], registry=self.registry)
        self._requests = Gauge(
            "faregate_pool_requests", "Requests in a pool", ["pool", "state"], registry=self.registry
        )
        self._workers = Gauge("faregate_pool_workers", "Workers of a pool", ["pool"], registry=self.registry)
        self.waiting = Gauge("faregate_waiting_callers", "Callers that wait at this gateway", registry=self.registry)

    def answered(self, model: str, total_us: int, charge_nanos: int) -> None:
        """Count a call that was answered."""
        self._answers.of(model).add(total_us, charge_nanos)

    def refused(self, code: str) -> None:
        """Count a call that was refused before it ran."""
        self._refused.labels(code).inc()

    def pool(self, name: str, depth: Depth, workers: Sequence[WorkerStatus]) -> None:
        """Take over the last sample of a pool."""
        self._requests.labels(name, "waiting").set(depth.waiting)
        self._requests.labels(name, "leased").set(depth.leased)
        self._requests.labels(name, "settling").set(depth.settling)
        self._workers.labels(name).set(len(workers))
