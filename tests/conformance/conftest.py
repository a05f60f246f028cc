"""Every test here runs against the twin in memory and against a real Valkey."""

from collections.abc import AsyncIterator

import pytest

from tests.conformance.backends import Backend, InMemory, InRedis

PATIENCE_S = 900


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no lease run out and no worker fall silent by itself: here time passes where a test says so."""
    for side in ("memory", "redis_worker"):
        monkeypatch.setattr(f"gateway.queues.{side}.LEASE_MS", PATIENCE_S * 1000)
    for side in ("memory", "redis_queue"):
        monkeypatch.setattr(f"gateway.queues.{side}.SILENT_MS", PATIENCE_S * 1000)
    monkeypatch.setattr("gateway.queues.revisions.SILENT_S", PATIENCE_S)


@pytest.fixture(params=["memory", "redis"])
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Give an empty queue of either kind."""
    backend = InMemory() if request.param == "memory" else InRedis(request.getfixturevalue("redis_url"))
    yield backend
    await backend.close()


@pytest.fixture
async def in_redis(redis_url: str) -> AsyncIterator[InRedis]:
    """Give an empty queue in Redis."""
    backend = InRedis(redis_url)
    yield backend
    await backend.close()
