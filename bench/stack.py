"""A whole Faregate of its own: `faregate up` on a fresh data folder, with an account that can pay."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import msgspec

from bench.servers import ROOT, free_port

COMMAND = (sys.executable, "-m", "gateway.cli")
START_S = 240
STOP_S = 30
BALANCE_USD = "1000000"


class StackProcess(msgspec.Struct, frozen=True):
    """A process of the stack, as connection.json names it."""

    role: str
    pid: int
    name: str


class StackConnection(msgspec.Struct, frozen=True, kw_only=True):
    """What connection.json says."""

    base_url: str
    admin_key: str
    api_key: str
    database_url: str
    redis_url: str
    processes: list[StackProcess]


class StackError(RuntimeError):
    """The stack did not start, or a command refused its work. The message holds what it said."""


class Stack:
    """One running stack: its data folder, its port, and the process of `faregate up`."""

    def __init__(self, data: Path, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.data = data
        self.port = port
        self.process = process

    @property
    def connection(self) -> StackConnection:
        """Read connection.json, which names other processes after one was restarted."""
        return msgspec.json.decode((self.data / "connection.json").read_bytes(), type=StackConnection)

    def processes(self, pool: str) -> dict[int, str]:
        """Give the roles of the stack's processes by pid, the supervisor's too; other pools' workers are idle."""
        known = {self.process.pid: "supervisor"}
        for each in self.connection.processes:
            idle = each.role == "worker" and not each.name.startswith(f"worker-{pool}-1")
            known[each.pid] = "idle worker" if idle else each.role
        return known

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a `faregate` command against this stack."""
        return subprocess.run(
            [*COMMAND, *words, "--data", str(self.data)], capture_output=True, text=True, cwd=ROOT, check=False
        )

    def ask(self, *words: str) -> dict[str, Any]:
        """Run a command with --json and read its answer. Raises StackError."""
        done = self.command(*words, "--json")
        if done.returncode != 0:
            raise StackError(f"faregate {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def create_key(self, name: str) -> str:
        """Create an account that can pay for everything, and give an API key of it."""
        account = self.ask("accounts", "create", name, "--balance", BALANCE_USD)
        return str(self.ask("keys", "create", "--account", str(account["id"]))["key"])

    def available(self, model: str, api_key: str) -> bool:
        """Say whether a model can be called now."""
        call = Request(f"http://127.0.0.1:{self.port}/v1/models", headers={"Authorization": f"Bearer {api_key}"})
        with urlopen(call, timeout=5) as answer:
            rows = json.load(answer)["data"]
        return any(row["id"] == model and row["available"] is True for row in rows)


@contextmanager
def running_stack(
    models: Sequence[str],
    environ: dict[str, str] | None = None,
    *,
    engines: str = "fake",
    catalog: str = "",
    data: Path | None = None,
) -> Iterator[Stack]:
    """Start a stack, wait until `models` can be called, and end it at the end.

    `catalog` is one in place of ours. The folder `data` is kept; without it, nothing is.
    """
    with tempfile.TemporaryDirectory(prefix="faregate-bench-") as folder:
        data, port = data or Path(folder) / "data", free_port()
        log = Path(folder) / "up.log"
        words = ["up", "--engines", engines, "--data", str(data), "--port", str(port)]
        if catalog:
            (Path(folder) / "catalog.yaml").write_text(catalog)
            words += ["--catalog", str(Path(folder) / "catalog.yaml")]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*COMMAND, *words], cwd=ROOT, stdout=output, stderr=output, env={**os.environ, **(environ or {})}
            )
        stack = Stack(data, port, process)
        try:
            wait_until_available(stack, models, log)
            yield stack
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_available(stack: Stack, models: Sequence[str], log: Path) -> None:
    """Wait until all `models` can be called. Raises StackError with the end of the stack's own words."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and stack.process.poll() is None:
        try:
            key = stack.connection.api_key
            if all(stack.available(model, key) for model in models):
                return
        except (FileNotFoundError, msgspec.MsgspecError, URLError, OSError):
            pass  # not that far yet
        time.sleep(0.2)
    raise StackError(f"the stack did not come up in {START_S} s:\n{log.read_text()[-3000:]}")
