"""A storm: callers at work while processes are killed and paused in turn."""

import asyncio
import random
import time

import msgspec

from tests.chaos.drain import Verdict, drain, verify_books
from tests.chaos.faults import ROLES, Fault, fenced, kill, pause, until
from tests.chaos.traffic import Memory, Traffic
from tests.system import System

SUBMITTERS, CALLERS, READERS = 8, 12, 6
MOST_AT_ONCE = 512
"""What one worker has under way at most, and so what one fault can make run again (I9)."""


GAP_S = (0.2, 0.8)
"""From the first answer after a fault to the next fault."""
ANSWERS = 3
SECONDS_A_FAULT = 3
"""A storm goes on until it has made so many faults: 20 where it lasts a minute."""


class Storm(msgspec.Struct, frozen=True, kw_only=True):
    """What was broken, what the callers were told, and what the books say of it."""

    faults: list[Fault]
    memory: Memory
    verdict: Verdict
    drain_s: float
    fenced: int
    """How many ends of workers were refused, because their leases were gone."""

    def count(self, kind: str, role: str) -> int:
        """Count the faults of one kind that hit one role."""
        return sum(1 for fault in self.faults if (fault.kind, fault.role) == (kind, role))


async def storm(system: System, key: str, *, seconds: float, seed: int = 1) -> Storm:
    """Load a system for so long, kill each of its processes in turn, now and then pause a worker, and drain."""
    fenced_before = fenced(system)
    traffic = Traffic(system.base_url, key, seed)
    traffic.start(submit=SUBMITTERS, call=CALLERS, stream=READERS)
    faults = await _break(system, traffic, seconds, random.Random(seed))
    await asyncio.sleep(1)
    await traffic.stop()
    drain_s = await drain(system)
    verdict = verify_books(system, allowed_repeats=len(faults) * MOST_AT_ONCE)
    return Storm(
        faults=faults,
        memory=traffic.memory,
        verdict=verdict,
        drain_s=drain_s,
        fenced=fenced(system) - fenced_before,
    )


async def _break(system: System, traffic: Traffic, seconds: float, chance: random.Random) -> list[Fault]:
    """Go through the roles in an order drawn anew each time, a pause last.

    Each fault is seen to happen, and falls on a system that answers again after the one before.
    """
    end = time.monotonic() + seconds
    faults: list[Fault] = []
    while time.monotonic() < end or len(faults) < seconds / SECONDS_A_FAULT:
        for role in [*chance.sample(ROLES, len(ROLES)), None]:
            told = len(traffic.memory.told)
            await until("callers are answered again", lambda told=told: len(traffic.memory.told) >= told + ANSWERS)
            await asyncio.sleep(chance.uniform(*GAP_S))
            which = chance.randrange(8)
            faults.append(await (kill(system, role, which) if role else pause(system, which)))
    return faults
