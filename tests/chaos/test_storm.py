"""Money holds whatever is killed, paused or lost: each claim on a real, running system under load."""

import asyncio
import os
import secrets

import pytest
import redis

from tests.chaos.drain import drain, hold_to_the_books, verify_books
from tests.chaos.faults import ROLES
from tests.chaos.storm import MOST_AT_ONCE, SECONDS_A_FAULT, storm
from tests.chaos.traffic import Traffic
from tests.system import System

pytestmark = pytest.mark.chaos

SECONDS = float(os.environ.get("CHAOS_SECONDS", "20"))
"""How long processes are killed; CHAOS_SECONDS=60 makes 20 faults and more."""


async def test_the_books_hold_through_kills_and_pauses(stormy: System) -> None:
    """Each process is killed with -9 in turn, workers lose their leases, and afterwards not a nano is amiss."""
    _, key = stormy.account(f"storm-{secrets.token_hex(3)}", "1000")
    passed = await storm(stormy, key, seconds=SECONDS)
    assert len(passed.faults) >= SECONDS / SECONDS_A_FAULT
    assert all(passed.count("kill", role) for role in ROLES)
    assert passed.count("pause", "worker")
    assert passed.fenced
    assert passed.verdict.broken == []
    assert passed.verdict.open_requests == 0
    assert len(passed.memory.accepted) > SECONDS * 2
    await hold_to_the_books(stormy, key, passed.memory)


async def test_an_emptied_redis_loses_nothing(stormy: System) -> None:
    """Redis is emptied three times under load: every accepted request still ends, and none is charged twice."""
    _, key = stormy.account(f"emptied-{secrets.token_hex(3)}", "1000")
    traffic = Traffic(stormy.base_url, key, seed=2)
    traffic.start(submit=8, call=6, stream=0)
    for _ in range(3):
        await asyncio.sleep(1.5)
        with redis.Redis.from_url(stormy.redis_url) as client:
            assert client.dbsize() > 0
            await asyncio.to_thread(client.flushall)
    await asyncio.sleep(1)
    await traffic.stop()
    await drain(stormy)
    verdict = verify_books(stormy, allowed_repeats=3 * 2 * MOST_AT_ONCE)
    assert verdict.broken == []
    assert len(traffic.memory.accepted) > 20
    await hold_to_the_books(stormy, key, traffic.memory)
