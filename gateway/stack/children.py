"""What a child of the stack is, and how it is spawned, awaited and stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.stack.errors import StackError
from gateway.stack.identity import launch_command

POLL_S = 0.01


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """A process that the stack runs."""

    role: str
    """What it is: `gateway`, `settler`, `worker`, `postgres` or `valkey`."""
    name: str
    """Its own name, on the console and in connection.json; workers share a role."""
    command: tuple[str, ...]
    log: Path
    environ: dict[str, str] = {}
    """Added to the stack's own environment."""
    identity: str = "same"
    death_signal: int = signal.SIGKILL
    """What the kernel sends it when the stack is gone."""
    stop_signal: int = signal.SIGTERM
    """What asks it to end in good order."""
    stop_s: float = 10.0
    """How long it may take for that before it is killed."""
    cwd: Path | None = None
    descriptors: tuple[int, ...] = ()
    """Open files that it inherits, under their own numbers."""


def spawn(child: Child) -> "subprocess.Popen[bytes]":
    """Start a child. Call it from the main thread: the kernel ties a child's life to the thread that made it."""
    command = launch_command(list(child.command), identity=child.identity, death_signal=child.death_signal)
    with child.log.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **child.environ},
            cwd=child.cwd,
            pass_fds=child.descriptors,
            start_new_session=True,
        )


def await_ready(process: "subprocess.Popen[bytes]", child: Child, ready: Callable[[], bool], timeout_s: float) -> None:
    """Wait until `ready` says so. Raises StackError with the child's last words when it ends or takes too long."""
    end = time.monotonic() + timeout_s
    while not ready():
        if process.poll() is not None:
            raise StackError(f"{child.role} ended while it started: {last_words(child.log)}")
        if time.monotonic() > end:
            raise StackError(f"{child.role} did not answer within {timeout_s:.0f} s: {last_words(child.log)}")
        time.sleep(POLL_S)


def stop(process: "subprocess.Popen[bytes]", child: Child) -> None:
    """Ask a child to end, wait for it, and kill it when it takes longer than it may."""
    with suppress(ProcessLookupError):
        process.send_signal(child.stop_signal)
    try:
        process.wait(child.stop_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(log: Path) -> str:
    """Answer the last line of a log that says something."""
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace")[-8192:].splitlines() if line.strip()]
        if lines:
            return f"{lines[-1][:300]} (see {log})"
    return f"it said nothing (see {log})"
