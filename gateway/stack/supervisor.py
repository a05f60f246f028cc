"""Keeps the children of a stack running: starts again what dies, and ends them in order."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from gateway.stack.children import Child, last_words, spawn
from gateway.stack.connection import Process
from gateway.stack.errors import StackError

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 10.0
STEADY_S = 30.0
"""A child that ran this long begins again with the first delay when it dies."""
POLL_S = 0.02


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A child as it runs now."""

    child: Child
    process: "subprocess.Popen[bytes]"
    at: float


class Supervisor:
    """The children of one stack. `changed` is called whenever a process is another than before."""

    def __init__(self, *, say: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.say = say
        self._changed = changed
        self._started: dict[str, Started] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}

    def processes(self) -> list[Process]:
        """Answer the processes as they are now."""
        return [
            Process(role=each.child.role, pid=each.process.pid, name=each.child.name)
            for each in self._started.values()
            if each.process.returncode is None
        ]

    def start(self, child: Child) -> None:
        """Start a child and keep it running."""
        self._keep_running(self.spawn(child))

    async def start_ready(self, child: Child, ready: Callable[[], bool], timeout_s: float) -> None:
        """Start a child, wait until it is ready, and keep it running. Raises StackError when it does not come up."""
        await self.await_ready(self.spawn(child), ready, timeout_s)

    async def await_ready(self, started: Started, ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until a child that was started is ready, and keep it running from then on. Raises StackError."""
        name, log = started.child.name, started.child.log
        while not ready():
            if started.process.poll() is not None:
                how = describe(started.process.returncode)
                raise StackError(f"{name} {how} as it started: {last_words(log)}")
            if time.monotonic() > started.at + timeout_s:
                raise StackError(f"{name} is not ready after {timeout_s:.0f} s: {last_words(log)}")
            await asyncio.sleep(POLL_S)
        self._keep_running(started)

    async def stop(self, roles: Iterable[str]) -> None:
        """Ask all children of these roles to end, and wait for them; a slow one is killed when its time is over."""
        wanted = set(roles)
        ending = [each for each in self._started.values() if each.child.role in wanted]
        for each in ending:
            if keeper := self._keepers.pop(each.child.name, None):
                keeper.cancel()
        for each in ending:
            each.process.send_signal(each.child.stop_signal)
        await asyncio.gather(*(self._await_end(each) for each in ending))
        for each in ending:
            del self._started[each.child.name]

    def kill(self) -> None:
        """End all children at once."""
        for keeper in self._keepers.values():
            keeper.cancel()
        for each in self._started.values():
            each.process.send_signal(each.child.death_signal)

    def spawn(self, child: Child) -> Started:
        """Start a child that is not kept running until it was ready once."""
        started = Started(child=child, process=spawn(child), at=time.monotonic())
        self._started[child.name] = started
        self._changed()
        return started

    def _keep_running(self, started: Started) -> None:
        name = started.child.name
        self._keepers[name] = asyncio.create_task(self._keep(started), name=f"keep {name}")

    async def _keep(self, started: Started) -> None:
        delay_s = FIRST_DELAY_S
        while True:
            code = await ended(started.process)
            lived_s = time.monotonic() - started.at
            if lived_s > STEADY_S:
                delay_s = FIRST_DELAY_S
            self.say(f"{started.child.name} {describe(code)}; starting it again. {_last_words(started.child, code)}")
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)
            started = self.spawn(started.child)

    async def _await_end(self, started: Started) -> None:
        try:
            await asyncio.wait_for(ended(started.process), started.child.stop_s)
        except TimeoutError:
            self.say(f"{started.child.name} did not end within {started.child.stop_s:.0f} s; ending it at once")
            started.process.send_signal(started.child.death_signal)
            await ended(started.process)


async def ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait until a process has ended; answers its exit code, negative for a signal."""
    code = process.poll()
    if code is not None:
        return code
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    try:
        loop.add_reader(descriptor, gone.set)
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()


def describe(code: int) -> str:
    """Say in words how a process ended."""
    if code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _last_words(child: Child, code: int) -> str:
    return "" if code <= 0 else f"It said: {last_words(child.log)}"
