"""vLLM at 16 streams: bare, through a worker and a real queue, and end to end over HTTP. The rounds take turns.

One process holds the engine for all three: only what stands around it differs (`engines_host.py`).
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.accounting import scan
from bench.client import Load, run_load
from bench.comparison import Comparison, Side
from bench.engines_callers import Callers, Plan
from bench.engines_host import MESSAGES
from bench.servers import ROOT
from bench.stack import Stack, running_stack

POOL = "bench"
ROUND_S = 300.0
"""How long a round may take at most."""
CATALOG = """\
pools:
  bench: {engine: vllm, workers: 0, lease_ms: 60000}
models:
  bench:
    tasks: [chat]
    description: What is measured.
    source: tiny:%s
    context_tokens: 2048
    prompt_overhead_tokens: 12
    price: [{usd: 0.1, per: 1M input tokens}, {usd: 0.4, per: 1M output tokens}]
    routes: [{pool: bench}]
    options: {max_model_len: 2048, max_num_seqs: 32, kv_cache_memory_bytes: 268435456}
"""


class Host:
    """The process with the engine."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def cpu_ms(self) -> float:
        """Give the CPU time of the process itself: vLLM's engine core is another."""
        return scan()[self._process.pid].cpu_ms

    async def bare(self, plan: Plan) -> float:
        """Run a round on the bare engine; answers its seconds."""
        order = {"requests": plan.requests, "streams": plan.streams, "tokens": plan.tokens}
        return float(await asyncio.to_thread(self._ask, order))

    def _ask(self, order: dict[str, int]) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self.line()

    def line(self) -> str:
        """Read a line that the process says. Raises RuntimeError where it has ended."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError(f"the process with the engine ended with {self._process.wait()}")
        return said.strip()


@contextmanager
def hosting(redis_url: str) -> Iterator[Host]:
    """Start the process with the engine, and end it at the end. Raises RuntimeError with its last words."""
    with tempfile.TemporaryDirectory(prefix="faregate-bench-") as folder, (Path(folder) / "log").open("w+") as log:
        command = [sys.executable, "-m", "bench.engines_host", f"{folder}/models", redis_url, POOL]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        host = Host(process)
        try:
            while host.line() != "ready":
                pass  # what vLLM says while it loads
            yield host
        except RuntimeError as error:
            raise RuntimeError(f"{error}:\n{(Path(folder) / 'log').read_text()[-3000:]}") from None
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def over_http(stack: Stack, key: str, plan: Plan) -> float:
    """Run a round of streams over HTTP; answers its seconds. Raises RuntimeError where one is not whole."""
    body = {"model": "bench", "messages": MESSAGES, "max_tokens": plan.tokens, "ignore_eos": True, "stream": True}
    load = Load(
        port=stack.port,
        api_key=key,
        body=json.dumps(body).encode(),
        connections=plan.streams,
        seconds=ROUND_S,
        most=plan.requests,
        stream=True,
    )
    began = time.perf_counter()
    result = run_load(load)
    seconds = time.perf_counter() - began
    if result.failures or result.streams != plan.requests:
        raise RuntimeError(f"{result.streams} of {plan.requests} streams were whole: {result.first_error}")
    return seconds


def compare(model: str, plan: Plan, *, judged: bool) -> Comparison:
    """Measure one model bare, through the worker, and over HTTP."""
    with (
        running_stack([], engines="vllm", catalog=CATALOG % model) as stack,
        hosting(stack.connection.redis_url) as host,
    ):
        key = stack.create_key("bench")
        while not stack.available("bench", key):
            time.sleep(0.2)
        bare, worker, http = asyncio.run(_take_turns(stack, key, host, plan))
    return Comparison(
        title=f"vLLM, {model}, {plan.streams} streams",
        unit="tokens/s",
        bare=bare,
        through=[worker, http],
        judged=worker.name if judged else "",
    )


async def _take_turns(stack: Stack, key: str, host: Host, plan: Plan) -> list[Side]:
    callers = Callers(stack.connection.redis_url, POOL)
    await callers.open()
    ways: dict[str, Callable[[Plan], Awaitable[float]]] = {
        "bare": host.bare,
        "worker and queue": callers.run,
        "over HTTP": lambda plan: asyncio.to_thread(over_http, stack, key, plan),
    }
    sides = [Side(name=name, rates=[]) for name in ways]
    for way in ways.values():
        await way(msgspec.structs.replace(plan, requests=plan.streams))
    for _ in range(plan.rounds):
        for side, way in zip(sides, ways.values(), strict=True):
            before_ms = host.cpu_ms()
            async with asyncio.timeout(ROUND_S):
                side.rates.append(plan.total / await way(plan))
            side.cpu_ms.append((host.cpu_ms() - before_ms) / plan.total)
    await callers.close()
    return sides


def measure() -> list[Comparison]:
    """Measure a model whose steps take as long as those of a large one on a GPU, and one whose steps take nothing."""
    return [
        compare("tiny-llama-slow", Plan(requests=32), judged=True),
        compare("tiny-llama", Plan(requests=128), judged=False),
    ]
