"""Every test here runs against the twin in memory and against a real Valkey."""

from collections.abc import AsyncIterator

import pytest

from tests.conformance.backends import Backend, InMemory, InRedis


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
