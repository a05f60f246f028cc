"""A real S3 server for tests: moto's, as a process of its own, and buckets in it."""

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from gateway.blobs.store import BlobPlace
from gateway.stack.ports import free_port

KEY = {"key_id": "testing", "secret": "testing-secret", "region": "us-east-1"}
START_S = 60.0


@contextmanager
def s3_server(log: Path) -> Iterator[str]:
    """Run an S3 server for the length of a block; answers its endpoint."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_S
        while not _answers(endpoint):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield endpoint
    finally:
        process.terminate()
        process.wait()


def _answers(endpoint: str) -> bool:
    try:
        return httpx.get(f"{endpoint}/moto-api/", timeout=5.0).status_code == 200
    except httpx.TransportError:
        return False


def new_bucket(endpoint: str) -> BlobPlace:
    """Make a bucket, and answer a place under a prefix in it."""
    bucket = f"test-{secrets.token_hex(6)}"
    made = httpx.put(f"{endpoint}/{bucket}", timeout=60.0)
    assert made.status_code == 200, made.text
    return BlobPlace(url=f"s3://{bucket}/some/prefix", endpoint=endpoint, **KEY)
