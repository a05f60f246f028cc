"""The supervisor starts again what dies, and ends its children in good order."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.stack.children import Child
from gateway.stack.errors import StackError
from gateway.stack.supervisor import FIRST_DELAY_S, Supervisor, describe

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


class Stage:
    """A supervisor, with what it said and the processes it told of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.told: list[list[int]] = []
        self.said_at_s: list[float] = []
        self.supervisor = Supervisor(say=self._say, changed=self._changed)

    def _say(self, words: str) -> None:
        self.said.append(words)
        self.said_at_s.append(time.monotonic())

    def _changed(self) -> None:
        self.told.append([process.pid for process in self.supervisor.processes()])

    def child(self, name: str, script: str, stop_s: float = 5.0) -> Child:
        return Child(
            role=name,
            name=name,
            command=(sys.executable, "-c", script),
            log=self.folder / f"{name}.log",
            stop_s=stop_s,
        )

    def is_up(self, name: str) -> Callable[[], bool]:
        return lambda: "up" in (self.folder / f"{name}.log").read_text()

    def pid(self, name: str) -> int:
        return next(process.pid for process in self.supervisor.processes() if process.name == name)


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.supervisor.kill()
    await stage.supervisor.stop({process.role for process in stage.supervisor.processes()})


async def test_a_child_that_is_killed_is_started_again_under_a_new_number(stage: Stage) -> None:
    stage.supervisor.start(stage.child("gateway", SLEEPER))
    first = stage.pid("gateway")
    os.kill(first, signal.SIGKILL)
    await until(lambda: any(told and first not in told for told in stage.told))
    assert stage.pid("gateway") != first
    assert stage.said[0].startswith("gateway was ended by SIGKILL; starting it again")


async def test_a_child_that_keeps_failing_is_started_less_and_less_often(stage: Stage) -> None:
    stage.supervisor.start(stage.child("settler", "raise SystemExit('no catalog')"))
    await until(lambda: len(stage.said) >= 4)
    pauses_s = [later - earlier for earlier, later in pairwise(stage.said_at_s)]
    assert all(pause_s >= 0.99 * FIRST_DELAY_S * 2**number for number, pause_s in enumerate(pauses_s))
    assert "It said: no catalog" in stage.said[0]


async def test_a_child_that_ends_before_it_is_ready_is_an_error_with_its_last_words(stage: Stage) -> None:
    child = stage.child("postgres", "raise SystemExit('disk on fire')")
    with pytest.raises(StackError, match="ended with exit code 1 as it started: disk on fire"):
        await stage.supervisor.start_ready(child, lambda: False, 60.0)


async def test_a_child_that_is_not_ready_in_time_is_an_error(stage: Stage) -> None:
    with pytest.raises(StackError, match="valkey is not ready after 0 s"):
        await stage.supervisor.start_ready(stage.child("valkey", SLEEPER), lambda: False, 0.1)


async def test_stopping_ends_only_the_children_of_that_role(stage: Stage) -> None:
    for name in ("gateway", "postgres"):
        await stage.supervisor.start_ready(stage.child(name, SLEEPER), stage.is_up(name), 60.0)
    await stage.supervisor.stop(["gateway"])
    assert [process.name for process in stage.supervisor.processes()] == ["postgres"]
    assert stage.said == []


async def test_a_child_that_does_not_end_in_its_time_is_killed(stage: Stage) -> None:
    child = stage.child("worker", STUBBORN, stop_s=0.2)
    await stage.supervisor.start_ready(child, stage.is_up("worker"), 60.0)
    start = time.monotonic()
    await stage.supervisor.stop(["worker"])
    assert time.monotonic() - start < 60.0
    assert stage.supervisor.processes() == []
    assert stage.said == ["worker did not end within 0 s; ending it at once"]


@pytest.mark.parametrize(
    ("code", "words"), [(0, "ended with exit code 0"), (3, "ended with exit code 3"), (-9, "was ended by SIGKILL")]
)
def test_the_end_of_a_process_is_told_in_words(code: int, words: str) -> None:
    assert describe(code) == words
