"""The life of the engine `vllm`: what does not load, how it ends, and that nothing of it stays behind."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gateway.contract.pools import ModelState, ServedModel
from tests.engines.vllm_driver import serving
from workers.engine import EngineLost
from workers.engines.vllm.engine import VllmEngine

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # vLLM and torch warn of themselves
]

PATIENCE_S = 300.0
LOADER = """
import asyncio, signal, sys
from pathlib import Path
from gateway.contract.pools import ServedModel
from workers.engines.vllm.engine import VllmEngine

async def main():
    engine = VllmEngine(Path(sys.argv[1]))
    model = ServedModel(name="tiny-llama", tasks=["chat"], source="tiny:tiny-llama")
    loading = asyncio.create_task(engine.load([model], lambda name, state: print(state.state, flush=True)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, loading.cancel)
    await asyncio.wait([loading])
    if not loading.cancelled():
        await asyncio.sleep(600)
    await engine.unload()

if __name__ == "__main__":
    asyncio.run(main())
"""


@contextmanager
def loader(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that loads a model and waits; killed with -9 at the end of the block."""
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    environ = os.environ | {"PYTHONPATH": str(Path.cwd())}
    worker = subprocess.Popen([sys.executable, script, tmp_path], stdout=subprocess.PIPE, text=True, env=environ)
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == "loading\n"
        yield worker
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def await_core(pid: int) -> list[psutil.Process]:
    """Wait for the engine's process, and answer it with any that helps it."""
    until = time.monotonic() + PATIENCE_S
    while not (born := [each for each in psutil.Process(pid).children(recursive=True) if is_core(each)]):
        assert time.monotonic() < until
        time.sleep(0.05)
    return born


def core() -> psutil.Process:
    """Find the engine's own process."""
    (found,) = [each for each in psutil.Process().children(recursive=True) if "EngineCore" in each.name()]
    return found


async def test_a_slow_model_is_stopped_within_a_second_and_its_death_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "tiny-llama-slow", ["chat"]) as driver:
        left = driver.chat(max_tokens=2000, ignore_eos=True, stream=True)
        await left.produced(20)
        left.task.cancel()
        await asyncio.wait([left.task])
        assert 20 <= left.run.units.output_tokens < 100
        at = time.monotonic()
        await driver.chat(max_tokens=1).text()
        assert time.monotonic() - at < 1, "the engine is free again"

        running = [driver.chat(max_tokens=2000, ignore_eos=True, stream=stream) for stream in (True, False)]
        await running[0].produced(5)
        core().kill()
        at = time.monotonic()
        for attempt in running:
            with pytest.raises(EngineLost):
                await attempt.text()
        assert time.monotonic() - at < 2
        assert isinstance(driver.engine.failure(), EngineLost)
        assert driver.engine.capacity() == 0
        with pytest.raises(EngineLost):
            await driver.chat().text()


def test_nothing_stays_behind_when_the_worker_is_killed(tmp_path: Path) -> None:
    """vLLM's own processes would outlive it, each with the memory of its model. While it loads is the hard case."""
    with loader(tmp_path) as worker:
        born = await_core(worker.pid)
    _, alive = psutil.wait_procs(born, timeout=PATIENCE_S)  # it learns so when it has imported vLLM
    assert not alive


@pytest.mark.parametrize("born", [False, True])
def test_a_worker_told_to_stop_while_it_loads_goes_at_once(tmp_path: Path, born: bool) -> None:
    """Whether it still imports vLLM, or the engine's process is there already."""
    with loader(tmp_path) as worker:
        if born:
            engine = await_core(worker.pid)
        else:
            time.sleep(1)
        at = time.monotonic()
        worker.terminate()
        worker.wait(PATIENCE_S)
        assert time.monotonic() - at < 15
        assert not born or not psutil.wait_procs(engine, timeout=5)[1]


def is_core(process: psutil.Process) -> bool:
    """Tell the engine's process, which has another name before it has begun, from Python's resource tracker."""
    try:
        return "EngineCore" in process.name() or any("spawn_main" in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"source": "tiny:tiny-nothing"}, "no tiny model is called tiny-nothing"),
        ({"source": "/nowhere"}, "neither a folder"),
        ({"source": ""}, "neither a folder"),
        ({"source": "tiny:tiny-llama", "options": {"max_num_seq": 3}}, "max_num_seq"),
        ({"source": "tiny:tiny-llama", "options": {"trust_remote_code": True}}, "trust_remote_code"),
        ({"source": "tiny:tiny-llama", "options": {"dtype": "int4"}}, "dtype"),
        (
            {"source": "tiny:tiny-llama", "tasks": ["chat", "embedding"]},
            "embeddings and rankings need an engine of their own",
        ),
        ({"source": "tiny:tiny-llama", "options": {"adapter": "mine"}}, "adapters need their base model"),
        ({"source": "tiny:tiny-embed", "options": {"max_model_len": 9_000_000}, "tasks": ["embedding"]}, "9000000"),
    ],
)
async def test_a_model_that_cannot_be_served_fails_and_says_why(
    tmp_path: Path, model: dict[str, object], says: str
) -> None:
    engine = VllmEngine(tmp_path)
    states: list[ModelState] = []
    served = ServedModel(**{"name": "m", "tasks": ["chat"]} | model)  # type: ignore[arg-type]
    await engine.load([served], lambda _, state: states.append(state))
    assert states[-1].state == "failed"
    assert says in states[-1].detail
    assert engine.capacity() == 0
    await engine.unload()
