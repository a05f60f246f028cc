"""A whole running Faregate, started as a stranger would start it: `faregate up`."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from gateway.money import parse_usd
from gateway.stack.ports import free_port

START_S = 400.0
STOP_S = 60.0
POLL_S = 0.1
POSTERS = 16


class System:
    """A running system, with its owner's and its caller's keys."""

    def __init__(self, process: "subprocess.Popen[bytes]", data: Path) -> None:
        self.process = process
        self.data = data
        connection = self.connection()
        self.base_url: str = connection["base_url"]
        self.api_key: str = connection["api_key"]
        self.admin_key: str = connection["admin_key"]
        self.database_url: str = connection["database_url"]
        self.redis_url: str = connection["redis_url"]

    def connection(self) -> dict[str, Any]:
        """Read `connection.json` as it stands."""
        known: dict[str, Any] = msgspec.json.decode((self.data / "connection.json").read_bytes())
        return known

    def pids(self, role: str) -> list[int]:
        """Give the processes of a role."""
        return [each["pid"] for each in self.connection()["processes"] if each["role"] == role]

    def client(self, key: str | None = None) -> httpx.Client:
        """Make a client with a caller's key."""
        headers = {"authorization": f"Bearer {key or self.api_key}"}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=240.0)

    def admin(self) -> httpx.Client:
        """Make a client with the admin key."""
        return self.client(self.admin_key)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a `faregate` command against this system."""
        command = [sys.executable, "-m", "gateway.cli", *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def account(self, name: str, balance_usd: str) -> tuple[int, str]:
        """Make an account with a balance and a key; answers its id and the key."""
        with self.admin() as client:
            made = client.post("/admin/api/accounts", json={"name": name, "balance_nanos": parse_usd(balance_usd)})
            assert made.status_code == 201, made.text
            account_id: int = made.json()["id"]
            key = client.post("/admin/api/keys", json={"account_id": account_id, "name": name})
            assert key.status_code == 201, key.text
            return account_id, key.json()["key"]

    def top_up(self, account_id: int, usd: str) -> None:
        """Add to an account's balance."""
        body = {"amount_nanos": parse_usd(usd), "reason": "for tests"}
        with self.admin() as client:
            told = client.post(f"/admin/api/accounts/{account_id}/top-up", json=body)
        assert told.is_success, told.text

    def balance(self, account_id: int) -> dict[str, Any]:
        """Show an account."""
        with self.admin() as client:
            told: dict[str, Any] = client.get(f"/admin/api/accounts/{account_id}").json()
        return told

    def wait_ready(self, *models: str, within_s: float = START_S) -> None:
        """Wait until these models can be called."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            with self.client() as client:
                told = client.get("/v1/models")
            assert told.status_code == 200, told.text
            rows = {row["id"]: row for row in told.json()["data"]}
            if all(rows.get(model, {}).get("available") for model in models):
                return
            time.sleep(POLL_S)
        raise AssertionError(f"{models} are not ready after {within_s} s")


@contextmanager
def running_system(
    data: Path, *options: str, engines: str = "fake", environ: Mapping[str, str] | None = None
) -> Iterator[System]:
    """Run a system for the length of a block; `environ` adds settings."""
    port = free_port()
    log = data.parent / f"{data.name}-up.log"
    command = [
        sys.executable,
        "-m",
        "gateway.cli",
        "up",
        "--data",
        str(data),
        "--port",
        str(port),
        "--engines",
        engines,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options], stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environ or {})}
        )
    try:
        _await_answer(process, port, log)
        yield System(process, data)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_answer(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=30.0).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(POLL_S)
    raise AssertionError(f"no answer after {START_S} s: {log.read_text()}")


async def post_all(system: System, key: str, calls: Sequence[tuple[str, bytes]]) -> list[int]:
    """Post `(path, body)` calls over a few connections, far cheaper than a client library; answers their statuses."""
    statuses, left = [0] * len(calls), iter(enumerate(calls))

    async def post() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(system.base_url).port)
        for at, (path, body) in left:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            statuses[at] = await _answer(reader)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(post() for _ in range(POSTERS)))
    return statuses


async def _answer(reader: asyncio.StreamReader) -> int:
    """Read one answer, of a known length or in chunks, and give its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if "transfer-encoding: chunked" in head:
        while (size := int(await reader.readuntil(b"\r\n"), 16)) > 0:
            await reader.readexactly(size + 2)
        await reader.readexactly(2)
    else:
        await reader.readexactly(int(head.split("content-length: ")[1].split("\r")[0]))
    return int(head.split()[1])
