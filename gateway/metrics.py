"""What a gateway counts, for Prometheus. Every name is documented in docs/reference/metrics.md."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.contract.pools import WorkerStatus
from gateway.queues.port import Depth

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """The metrics of one gateway process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            "faregate_requests", "Calls answered by this gateway", ["model"], registry=self.registry
        )
        self._seconds = Histogram(
            "faregate_request_seconds",
            "From admission to the answer",
            ["model"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._charged = Counter(
            "faregate_charged_nanos", "Charges of answered calls, in 1e-9 US dollars", ["model"], registry=self.registry
        )
        self._refused = Counter("faregate_refusals", "Calls refused, by error code", ["code"], registry=self.registry)
        self._requests = Gauge(
            "faregate_pool_requests", "Requests in a pool", ["pool", "state"], registry=self.registry
        )
        self._workers = Gauge("faregate_pool_workers", "Workers of a pool", ["pool"], registry=self.registry)
        self.waiting = Gauge("faregate_waiting_callers", "Callers that wait at this gateway", registry=self.registry)
        self._ok: dict[str, tuple[Counter, Histogram, Counter]] = {}

    def answered(self, model: str, total_us: int, charge_nanos: int) -> None:
        """Count a call that was answered."""
        known = self._ok.get(model)
        if known is None:
            known = self._ok[model] = (
                self._answers.labels(model),
                self._seconds.labels(model),
                self._charged.labels(model),
            )
        known[0].inc()
        known[1].observe(total_us / 1e6)
        known[2].inc(charge_nanos)

    def refused(self, code: str) -> None:
        """Count a call that was refused before it ran."""
        self._refused.labels(code).inc()

    def pool(self, name: str, depth: Depth, workers: Sequence[WorkerStatus]) -> None:
        """Take over the last sample of a pool."""
        self._requests.labels(name, "waiting").set(depth.waiting)
        self._requests.labels(name, "leased").set(depth.leased)
        self._requests.labels(name, "settling").set(depth.settling)
        self._workers.labels(name).set(len(workers))
