"""`/health/live`, `/health/ready` and `/metrics`, for platforms."""

from typing import Any

from litestar import Response, get
from litestar.di import NamedDependency
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway.flow.floor import Floor
from gateway.metrics import Metrics
from gateway.readiness import Readiness


@get("/health/live", summary="Whether the process answers", tags=["Operations"])
async def live() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "live"}


@get("/health/ready", summary="Whether calls can be served, with the reasons where not", tags=["Operations"])
async def ready(readiness: NamedDependency[Readiness]) -> Response[dict[str, Any]]:
    """Say whether calls can be served."""
    reasons = readiness.reasons()
    body = {"status": "not ready" if reasons else "ready", "reasons": reasons}
    return Response(body, status_code=503 if reasons else 200)


@get("/metrics", summary="Prometheus metrics", tags=["Operations"], media_type="text/plain")
async def metrics(metrics: NamedDependency[Metrics], floor: NamedDependency[Floor]) -> Response[bytes]:
    """Give all metrics in the Prometheus text format."""
    for name, state in floor.pools.items():
        metrics.pool(name, state.depth, state.workers)
    return Response(generate_latest(metrics.registry), headers={"content-type": CONTENT_TYPE_LATEST})
