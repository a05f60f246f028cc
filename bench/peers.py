"""LiteLLM's proxy under the same load: in a virtual environment of its own, in front of an upstream that costs nothing.

It is measured with a master key alone, and, where the engine of its database client can be fetched, with a
database, a virtual key and its spend logs. The database's own CPU is not counted in its figures.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec

from bench.figures import Rounds
from bench.rounds import pace, saturate, streamed
from bench.servers import asgi_server, free_port, stop, wait_for_port
from bench.target import Plan, Target

HOME = Path(__file__).parent / "peers-venv"
PACKAGES = ("litellm[proxy]==1.106.2", "httptools==0.9.0", "prisma==0.15.0")
MASTER_KEY = "sk-bench-0123456789abcdef"
INSTALL_S = 900
GENERATE_S = 180
START_S = 120
SCHEMA = "lib/python{0.major}.{0.minor}/site-packages/litellm/proxy/schema.prisma"

CONFIG = """\
model_list:
  - model_name: mock
    litellm_params: {{model: openai/mock, api_base: "http://127.0.0.1:{upstream}/v1", api_key: none}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false}}
"""


class Peers(msgspec.Struct, frozen=True, kw_only=True):
    """The rounds of the peers that could be measured, and a line for each that could not."""

    rounds: list[Rounds]
    notes: list[str]


def measure_peers(plan: Plan, database_url: str) -> Peers:
    """Measure LiteLLM's proxy without and with a database on the server of `database_url`."""
    why_not = install()
    if why_not:
        return Peers(rounds=[], notes=[f"LiteLLM was not measured: {why_not}"])
    with asgi_server("bench.mock:app") as (upstream, pid):
        mock = Target(name="mock", port=upstream, processes={pid: "mock"}, chat_model="mock", stream_model="mock")
        mock.warm(1, plan.connections)
        own = Rounds(
            target="mock",
            paced=pace(mock, plan),
            streamed=streamed(mock, msgspec.structs.replace(plan, rounds=1)),
        )
        with litellm(upstream, {}) as (port, process):
            rounds = [_measure("LiteLLM", port, process, MASTER_KEY, own, plan)]
        why_not = fetch_database_engine()
        if why_not:
            return Peers(rounds=rounds, notes=[f"LiteLLM with its database was not measured: {why_not}"])
        with litellm(upstream, {"DATABASE_URL": _own_database(database_url)}) as (port, process):
            rounds.append(_measure("LiteLLM + database", port, process, virtual_key(port), own, plan))
    return Peers(rounds=rounds, notes=[])


def _measure(name: str, port: int, pid: int, key: str, upstream: Rounds, plan: Plan) -> Rounds:
    target = Target(
        name=name, port=port, processes={pid: "litellm"}, chat_model="mock", stream_model="mock", api_key=key
    )
    saturated = saturate([target], plan)[name]
    return Rounds(
        target=name,
        saturated=saturated,
        paced=pace(target, plan),
        streamed=streamed(target, plan),
        memory=target.memory(),
        chunks_per_stream=target.chunks_per_stream(),
        engine_ms=upstream.paced[0].load.latency_ms.p50,
        engine_first_ms=upstream.streamed[0].load.first_event_ms.p50,
    )


def install() -> str:
    """Make the virtual environment where it is not there yet. Answers why that failed, or nothing."""
    done = HOME / "installed"
    if done.exists() and done.read_text() == " ".join(PACKAGES):
        return ""
    print(f"  installing {' '.join(PACKAGES)} into {HOME} (750 MB, some minutes) ...", file=sys.stderr, flush=True)
    venv.create(HOME, with_pip=True, clear=True)
    failed = _failure([str(HOME / "bin/python"), "-m", "pip", "install", "--quiet", *PACKAGES], INSTALL_S)
    if not failed:
        done.write_text(" ".join(PACKAGES))
    return failed


def fetch_database_engine() -> str:
    """Have prisma fetch its engine and make its client. Answers why that failed, or nothing."""
    schema = HOME / SCHEMA.format(sys.version_info)
    return _failure([str(HOME / "bin/prisma"), "generate", "--schema", str(schema)], GENERATE_S)


def _failure(command: list[str], within_s: float) -> str:
    try:
        path = f"{HOME / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=within_s, check=False, env={**os.environ, "PATH": path}
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} took more than {within_s:.0f} s"
    if done.returncode == 0:
        return ""
    words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in words if "error" in line.lower()] or words
    return errors[-1].strip()[:200] if errors else f"{command[0]} ended with {done.returncode}"


@contextmanager
def litellm(upstream: int, environ: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Run LiteLLM's proxy in front of `upstream`. Yields its port and process id."""
    port = free_port()
    settings = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "PATH": f"{HOME / 'bin'}:{os.environ['PATH']}",
        **environ,
    }
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(CONFIG.format(upstream=upstream, key=MASTER_KEY))
        command = [str(HOME / "bin/litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings}, cwd=folder)
        try:
            wait_for_port(port, process, START_S)
            yield port, process.pid
        finally:
            stop(process)


def virtual_key(port: int) -> str:
    """Have LiteLLM make a key with a budget, as its users have one."""
    call = Request(
        f"http://127.0.0.1:{port}/key/generate",
        data=json.dumps({"max_budget": 1_000_000}).encode(),
        headers={"Authorization": f"Bearer {MASTER_KEY}", "Content-Type": "application/json"},
    )
    with urlopen(call, timeout=60) as answer:
        return str(json.load(answer)["key"])


def _own_database(url: str) -> str:
    """Name a database of LiteLLM's own on the same server; its migration creates it."""
    head, question, options = url.partition("?")
    return head.rsplit("/", 1)[0] + "/litellm" + question + options
