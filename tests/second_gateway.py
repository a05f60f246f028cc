"""Another gateway process over the same Postgres and Redis as a running system, as behind a load balancer."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from gateway.stack.ports import free_port
from tests.system import POLL_S, START_S, STOP_S, System


class Beside(System):
    """A running system as its other gateway shows it; `process` is that gateway alone."""

    def __init__(self, system: System, process: "subprocess.Popen[bytes]", base_url: str) -> None:
        super().__init__(process, system.data)
        self.base_url = base_url


@contextmanager
def second_gateway(system: System, log: Path, environ: Mapping[str, str] | None = None) -> Iterator[Beside]:
    """Run another gateway for the length of a block; `environ` adds settings."""
    port = free_port()
    base_url = f"http://127.0.0.1:{port}"
    settings = {
        "FAREGATE_DATABASE_URL": system.database_url,
        "FAREGATE_REDIS_URL": system.redis_url,
        "FAREGATE_ADMIN_KEY": system.admin_key,
        "FAREGATE_BLOB_URL": str(system.data / "blobs"),
        "FAREGATE_ENGINES": "fake",
        "FAREGATE_PORT": str(port),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "gateway"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings, **(environ or {})},
        )
    try:
        _await_ready(process, base_url, log)
        yield Beside(system, process, base_url)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(process: "subprocess.Popen[bytes]", base_url: str, log: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{base_url}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < end, log.read_text()
        time.sleep(POLL_S)
