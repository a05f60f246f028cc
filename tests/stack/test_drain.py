"""A gateway that is told to stop says so before it closes its door."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.stack.ports import free_port

ROOT = Path(__file__).parents[2]
NOTICE_S = 4.0


@pytest.fixture
def gateway(database_url: str, redis_url: str) -> Iterator[tuple["subprocess.Popen[bytes]", httpx.Client]]:
    """A gateway by itself, with a notice of some seconds."""
    port = free_port()
    given = {
        "FAREGATE_DATABASE_URL": database_url,
        "FAREGATE_REDIS_URL": redis_url,
        "FAREGATE_ADMIN_KEY": "a key that is long enough",
        "FAREGATE_PORT": str(port),
        "FAREGATE_DRAIN_NOTICE_S": str(NOTICE_S),
    }
    process = subprocess.Popen([sys.executable, "-m", "gateway.cli", "gateway"], cwd=ROOT, env={**os.environ, **given})
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield process, client
    process.kill()
    process.wait()


def ready(client: httpx.Client) -> int:
    try:
        return client.get("/health/ready").status_code
    except httpx.TransportError:
        return 0


def test_readiness_drops_first_and_new_connections_are_refused_after_the_notice(
    gateway: tuple["subprocess.Popen[bytes]", httpx.Client],
) -> None:
    process, client = gateway
    end = time.monotonic() + 120
    while ready(client) != 200:
        assert time.monotonic() < end
        time.sleep(0.05)
    told_at = time.monotonic()
    process.send_signal(signal.SIGTERM)
    while (answer := client.get("/health/ready", headers={"connection": "close"})).status_code == 200:
        time.sleep(0.02)
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["draining: this gateway is stopping"]
    process.wait(120)
    assert time.monotonic() - told_at >= NOTICE_S
    assert ready(client) == 0
