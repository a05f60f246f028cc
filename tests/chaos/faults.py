"""Faults, and the proof that each of them happened."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.system import System

ROLES = ("gateway", "worker", "settler", "postgres", "valkey")
SEEN_S = 120.0
POLL_S = 0.02
LEASE_S = 1.5


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that was seen to happen: after `kill` another process took the place, `pause` outlasted the leases."""

    kind: str
    role: str
    pid: int
    seen_after_s: float


class FaultNotSeen(AssertionError):
    """A fault was made, and nothing shows that it happened."""


async def until(what: str, holds: Callable[[], bool]) -> float:
    """Wait until something holds; answers how long that took. Raises FaultNotSeen."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > SEEN_S:
            raise FaultNotSeen(f"not seen within {SEEN_S} s: {what}")
        await asyncio.sleep(POLL_S)
    return time.monotonic() - began


async def kill(system: System, role: str, which: int = 0) -> Fault:
    """Kill one process of a role with -9, and see another in its place."""
    await until(f"a {role} to kill", lambda: bool(system.pids(role)))
    pids = system.pids(role)
    pid = pids[which % len(pids)]
    os.kill(pid, signal.SIGKILL)
    gone_s = await until(f"{role} {pid} is gone", lambda: not alive(pid))
    back_s = await until(
        f"another {role} in the place of {pid}",
        lambda: pid not in system.pids(role) and len(system.pids(role)) == len(pids),
    )
    return Fault(kind="kill", role=role, pid=pid, seen_after_s=gone_s + back_s)


async def pause(system: System, which: int = 0) -> Fault:
    """Stop one worker until its leases are over, and let it go on."""
    pids = system.pids("worker")
    pid = pids[which % len(pids)]
    os.kill(pid, signal.SIGSTOP)
    try:
        seen_s = await until(f"worker {pid} is stopped", lambda: state(pid) == "T")
        await asyncio.sleep(LEASE_S + 2.5)  # the lease, and a sweep (every 2 s) that finds it over
    finally:
        os.kill(pid, signal.SIGCONT)
    return Fault(kind="pause", role="worker", pid=pid, seen_after_s=seen_s)


def alive(pid: int) -> bool:
    """Say whether a process runs; one that waits to be reaped does not."""
    return state(pid) not in ("", "Z")


def state(pid: int) -> str:
    """Give the state of a process as proc(5) has it, nothing where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text[text.rindex(")") + 2]


def fenced(system: System) -> int:
    """Count the ends that workers were refused, by their logs."""
    count = 0
    for log in system.data.rglob("*worker*.log*"):
        for line in log.read_text(errors="replace").splitlines():
            if '"run.fenced"' in line:
                count += len(json.loads(line)["requests"])
    return count
