"""A settler's metrics are served where its setting says so, and hold what was counted."""

import httpx

from gateway.settler_metrics import SettlerMetrics
from gateway.stack.ports import free_port


def test_what_was_counted_is_served() -> None:
    metrics = SettlerMetrics()
    metrics.settled(["succeeded", "succeeded", "failed"])
    metrics.batch(3, [0.02, -0.5])
    metrics.sweep()
    metrics.swept("put_back", 2)
    metrics.webhook("delivered", 0.03)
    metrics.webhooks_under_way(lambda: 7)
    port = free_port()
    stop = metrics.serve("127.0.0.1", port)
    try:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    finally:
        stop()
    for line in (
        'faregate_settled_total{outcome="succeeded"} 2.0',
        'faregate_settled_total{outcome="failed"} 1.0',
        "faregate_settle_batch_sum 3.0",
        "faregate_settle_lag_seconds_count 2.0",
        "faregate_sweeps_total 1.0",
        'faregate_swept_total{what="put_back"} 2.0',
        'faregate_webhook_tries_total{result="delivered"} 1.0',
        "faregate_webhooks_under_way 7.0",
    ):
        assert line in text.splitlines()
