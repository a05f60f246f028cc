"""Leases of workers that died, which run out at once: so the pools of these tests can have long ones.

Short ones would be lost wherever the machine stands still for a moment, and attempts be made that no test reckons with.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import redis

from gateway.queues.keys import keys_of
from tests.system import System

LOOK_S = 0.1
WITHIN_S = 60.0


def workers(system: System, pool: str) -> frozenset[int]:
    """Give the processes that work for a pool."""
    processes = system.connection()["processes"]
    return frozenset(each["pid"] for each in processes if each["name"].startswith(f"worker-{pool}-"))


def leased(system: System, pool: str) -> int:
    """Count what the workers of a pool run."""
    with redis.Redis.from_url(system.redis_url) as client:
        return int(client.zcard(keys_of(pool).leases))  # type: ignore[arg-type]


def kill_workers(system: System, pool: str) -> None:
    """Kill every worker of a pool, as a machine that loses its power does; their leases run out."""
    pids = workers(system, pool)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + WITHIN_S
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.01)
    lapse(system, pool)


@contextmanager
def lapsing(system: System, pool: str) -> Iterator[None]:
    """Let the leases of a pool run out whenever a worker was started there, in the place of one that died."""
    known, over = workers(system, pool), threading.Event()

    def watch() -> None:
        nonlocal known
        while not over.wait(LOOK_S):
            now = workers(system, pool)
            if now - known:  # it has taken nothing yet: what is under lease is the dead one's
                known = now
                lapse(system, pool)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def lapse(system: System, pool: str) -> None:
    """Let all leases of a pool run out."""
    with redis.Redis.from_url(system.redis_url) as client:
        leases = keys_of(pool).leases
        held: list[bytes] = client.zrange(leases, 0, -1)  # type: ignore[assignment]
        if held:
            client.zadd(leases, dict.fromkeys(held, 0), xx=True)


def lives(pid: int) -> bool:
    """Say whether a process still runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
