"""A process with one vLLM engine that works twice over: bare, as `AsyncLLM` alone, and as a worker of a pool.

`python -m bench.engines_host MODELS_DIR REDIS_URL POOL`. It says `ready`, then answers each line of its input,
`{"requests": N, "streams": N, "tokens": N}`, with the seconds that so much work took the bare engine. All the while it
is a worker of the pool.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import uvloop

from workers.cli import serve
from workers.engines import ENGINES
from workers.engines.vllm.engine import VllmEngine
from workers.log import configure_logs
from workers.settings import load_settings

SAID = "What is the time where the sun rises first, and who is up to see it?"
MESSAGES = [{"role": "user", "content": SAID}]


async def bare(llm: Any, requests: int, streams: int, tokens: int, ids: Iterator[int]) -> float:
    """Have `streams` callers make `requests` chats of `tokens` tokens, one after the other; answers the seconds."""
    from vllm.renderers import ChatParams
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    left = iter(range(requests))

    async def caller() -> None:
        for _ in left:
            params = ChatParams(chat_template_kwargs={"add_generation_prompt": True})
            _, (prompt,) = await llm.renderer.render_chat_async([MESSAGES], params)
            sampling = SamplingParams(max_tokens=tokens, ignore_eos=True, output_kind=RequestOutputKind.DELTA)
            got = 0
            async for step in llm.generate(prompt, sampling, f"bare-{next(ids)}"):
                got += len(step.outputs[0].token_ids)
            assert got == tokens

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(streams)))
    return time.perf_counter() - began


class Tapped(VllmEngine):
    """The worker's engine, which can be reached past the worker."""

    made: ClassVar[list["Tapped"]] = []

    def __init__(self, models_dir: Path) -> None:
        super().__init__(models_dir)
        self.made.append(self)


async def loaded(working: "asyncio.Task[int]") -> Any:
    """Wait until the worker has loaded its model, and give vLLM's own engine."""
    while not working.done():
        for engine in Tapped.made:
            if engine.model is not None:
                return engine.model._llm  # type: ignore[attr-defined]  # what is measured has no name outside
        await asyncio.sleep(0.1)
    raise RuntimeError(f"the worker ended: {working.result()}")


async def host(models_dir: Path, redis_url: str, pool: str) -> None:
    """Work, and answer until the input ends."""
    settings = load_settings({}, redis_url=redis_url, pool=pool, models_dir=models_dir, log_level="error")
    configure_logs(settings.log_level, pool=pool)
    ENGINES["vllm"] = "bench.engines_host:Tapped"
    working = asyncio.create_task(serve(settings))
    llm, ids = await loaded(working), count()
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await bare(llm, **json.loads(line), ids=ids)), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)  # what drains a worker
    await working


if __name__ == "__main__":
    folder, url, its_pool = sys.argv[1:]
    from bench.engines_host import host as tapping_host  # not that of __main__, whose `Tapped` would be another

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(tapping_host(Path(folder), url, its_pool))
