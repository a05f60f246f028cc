"""diffusers: a bare pipeline beside the same one in a worker, and requests that wait drawn together or one by one.

One process and one engine serve all sides, and the rounds take turns; the worker pulls from the queue's twin in memory,
whose work is counted as the worker's. `python -m bench.engines_diffusers` runs this alone.
"""

import asyncio
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from bench.comparison import Comparison, Side, render
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ImageInput
from gateway.contract.pools import PoolSpec, ServedModel
from gateway.contract.request import Request, encode_input
from gateway.queues.memory import MemoryQueues
from gateway.queues.port import Waiting
from workers.engines import ENGINES
from workers.engines.diffusers.engine import DiffusersEngine
from workers.log import configure_logs
from workers.settings import WorkerSettings
from workers.worker import Worker

POOL = "bench"
ROUNDS = 5
IMAGES = 16
STEPS = 8
LOOK_S = 0.02
"""Between two looks for ends; a hundredth of a second on average is added to a round of many seconds."""
LARGE, SMALL = 256, 64
TOGETHER_AT_MOST = 0.6
"""The share of the time of one by one in which requests that wait are to be drawn."""
TOGETHER = "Images that wait, drawn together"

ONE = ServedModel(name="one", tasks=["text-to-image"], source="tiny:tiny-sd", options={"max_batch": 1})
MANY = ServedModel(name="many", tasks=["text-to-image"], source="tiny:tiny-sd", options={"max_batch": IMAGES})


class Kept(DiffusersEngine):
    """The engine of the worker, within reach."""

    made: ClassVar["Kept"]

    def __init__(self, models_dir: Path) -> None:
        super().__init__(models_dir)
        Kept.made = self


class Bench:
    """A worker of a pool in memory."""

    def __init__(self, queues: MemoryQueues) -> None:
        self._queue = queues.pool(POOL)
        self._settler = queues.settler()

    async def bare(self, side: int) -> float:
        """Draw by the bare pipeline, one call an image, in the thread that the engine uses; answers the seconds."""
        engine = Kept.made
        began = time.perf_counter()
        await engine._torch.do(partial(_draw_bare, engine.gallery.loaded("one"), side))
        return time.perf_counter() - began

    async def through(self, model: str, side: int) -> float:
        """Draw as many by requests that wait in the queue; answers the seconds until the last has ended."""
        given = [ImageInput(prompt="a gate", size=f"{side}x{side}", steps=STEPS, seed=seed) for seed in range(IMAGES)]
        requests = [Request(new_request_id(), 1, model, "text-to-image", encode_input(each), 1) for each in given]
        began = time.perf_counter()
        await self._queue.enqueue([Waiting(request) for request in requests])
        ended = 0
        while ended < IMAGES:
            await asyncio.sleep(LOOK_S)  # the twin waits by polling, which would count as the worker's work
            for pool, entry in await self._settler.settlements([POOL], 1000, wait_s=0.0):
                for end in entry.ended:
                    assert end.outcome == "succeeded", (end.outcome, end.detail)
                    ended += 1
                await self._settler.settled([(pool, entry.entry)])
        return time.perf_counter() - began


def _draw_bare(pipeline: Any, side: int) -> None:
    import torch

    bare = pipeline._base
    torch.set_num_threads(1)  # as the engine does for tiny models
    for seed in range(IMAGES):
        noise = [torch.Generator().manual_seed(seed)]
        bare("a gate", width=side, height=side, num_inference_steps=STEPS, generator=noise)


async def _measure(models_dir: Path) -> list[Comparison]:
    ENGINES["diffusers"] = f"{__name__}:Kept"
    queues = MemoryQueues()
    await queues.pool(POOL).publish_spec(PoolSpec(pool=POOL, engine="diffusers", models=[ONE, MANY]))
    worker = Worker(WorkerSettings(redis_url="", pool=POOL, models_dir=models_dir), queues.worker(POOL), queues.pool)
    working = asyncio.create_task(worker.run())
    bench = Bench(queues)
    for model in ("one", "many"):  # the first requests wait until the models are loaded
        await bench.through(model, SMALL)
    comparisons = [await _beside_bare(bench), *[await _together(bench, side) for side in (SMALL, LARGE)]]
    worker.stopping.set()
    with suppress(asyncio.CancelledError):
        await working
    return comparisons


async def _beside_bare(bench: Bench) -> Comparison:
    bare, through = Side(name="bare pipeline", rates=[]), Side(name="through a worker", rates=[])
    await bench.bare(LARGE)
    for _ in range(ROUNDS):
        for side, drawn in ((bare, partial(bench.bare, LARGE)), (through, partial(bench.through, "one", LARGE))):
            cpu_s = time.process_time()
            side.rates.append(IMAGES / await drawn())
            side.cpu_ms.append((time.process_time() - cpu_s) * 1000 / IMAGES)
    title = f"diffusers, {LARGE}x{LARGE}, {STEPS} steps, one image a call"
    return Comparison(title=title, unit="images/s", bare=bare, through=[through], judged=through.name)


async def _together(bench: Bench, side: int) -> Comparison:
    one, many = Side(name="one by one", rates=[]), Side(name="together", rates=[])
    for _ in range(ROUNDS):
        one.rates.append(IMAGES / await bench.through("one", side))
        many.rates.append(IMAGES / await bench.through("many", side))
    title = f"{TOGETHER}: {IMAGES} of {side}x{side}, {STEPS} steps"
    made = Comparison(title=title, unit="images/s", bare=one, through=[many])
    share = 1 + made.added_percent(many) / 100
    note = f"together takes {share:.2f} of the time of one by one; asked: at most {TOGETHER_AT_MOST}"
    return Comparison(title=title, unit="images/s", bare=one, through=[many], note=note)


def measure() -> list[Comparison]:
    """Measure a tiny Stable Diffusion: what the worker adds, and what it gains by drawing together."""
    configure_logs("error", pool=POOL)
    with tempfile.TemporaryDirectory(prefix="faregate-bench-") as folder:
        return asyncio.run(_measure(Path(folder)))


if __name__ == "__main__":
    measured = measure()
    print(render(measured))
    print("\n".join(each.note for each in measured if each.note))
    checks = [check for each in measured if (check := each.check()) is not None]
    sys.exit(0 if all(check.passed for check in checks) else 1)
