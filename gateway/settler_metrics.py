"""What a settler counts, for Prometheus. Every name is documented in docs/reference/metrics.md."""

from collections import Counter as Tally
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from gateway.contract.states import OUTCOMES, Outcome

_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_LAGS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_TRIES_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Swept = Literal["returned", "given_up", "put_back", "ended"]
"""What a sweep did: with a lease that ran out, with a request that Redis lost, with one that nobody ends."""


class SettlerMetrics:
    """The metrics of one settler process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        settled = Counter("faregate_settled", "Requests charged by this settler", ["outcome"], registry=registry)
        self._settled: dict[Outcome, Counter] = {outcome: settled.labels(outcome) for outcome in OUTCOMES}
        self._batch = Histogram("faregate_settle_batch", "Ends read together", buckets=_BATCHES, registry=registry)
        self._lag = Histogram(
            "faregate_settle_lag_seconds", "From an end to its charge", buckets=_LAGS_S, registry=registry
        )
        self._sweeps = Counter("faregate_sweeps", "Rounds of the sweeper", registry=registry)
        self._swept = Counter(
            "faregate_swept", "Requests that the sweeper did something about", ["what"], registry=registry
        )
        self._handed_over = Counter(
            "faregate_handed_over", "Requests that went on in another pool", ["pool", "to"], registry=registry
        )
        self._tries = Counter("faregate_webhook_tries", "Tries to deliver a webhook", ["result"], registry=registry)
        self._try_seconds = Histogram(
            "faregate_webhook_seconds", "How long a try took", buckets=_TRIES_S, registry=registry
        )
        self._books_green = Gauge(
            "faregate_books_green", "Whether the books held when they were last verified", registry=registry
        )
        self._books_at = Gauge(
            "faregate_books_checked_at", "When the books were last verified, in Unix seconds", registry=registry
        )
        self._under_way = Gauge("faregate_webhooks_under_way", "Tries that are under way", registry=registry)

    def settled(self, outcomes: Sequence[Outcome]) -> None:
        """Count requests that were charged now."""
        for outcome, count in Tally(outcomes).items():
            self._settled[outcome].inc(count)

    def batch(self, ended: int, lags_s: Sequence[float]) -> None:
        """Count ends that were read together, and how late each entry of theirs was settled."""
        self._batch.observe(ended)
        for lag_s in lags_s:
            self._lag.observe(max(lag_s, 0.0))

    def sweep(self) -> None:
        """Count a round of the sweeper."""
        self._sweeps.inc()

    def swept(self, what: Swept, count: int) -> None:
        """Count what a round did."""
        self._swept.labels(what).inc(count)

    def handed_over(self, pool: str, to: str, count: int) -> None:
        """Count requests that failed in a pool and went on in another."""
        self._handed_over.labels(pool, to).inc(count)

    def webhook(self, result: str, seconds: float) -> None:
        """Count a try to deliver a webhook."""
        self._tries.labels(result).inc()
        self._try_seconds.observe(seconds)

    def books(self, green: bool, checked_at: datetime) -> None:
        """Take over the last verdict about the books, whoever came to it."""
        self._books_green.set(1 if green else 0)
        self._books_at.set(checked_at.timestamp())

    def webhooks_under_way(self, count: Callable[[], int]) -> None:
        """Take over where to read how many webhooks are under way."""
        self._under_way.set_function(count)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serve `/metrics` on a thread of its own; answers what stops it. Raises OSError where the port is taken."""
        server, thread = start_http_server(port, addr=host, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop
