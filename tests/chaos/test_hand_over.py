"""Whoever dies while requests go from one pool to the next: each is answered, and charged once."""

import asyncio
import os
import random
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from tests.chaos.drain import charges, drain, hold_to_the_books, verify_books
from tests.chaos.faults import kill, pause, until
from tests.chaos.points import POINTS, copy_with_points
from tests.chaos.storm import ANSWERS, MOST_AT_ONCE
from tests.chaos.traffic import Traffic
from tests.flow.test_requests import finished
from tests.system import System, running_system

pytestmark = pytest.mark.chaos

CATALOG = Path(__file__).parent / "hand_over.yaml"
MODELS = ("fake-chat", "fake-stream", "fake-picture")
SECONDS = float(os.environ.get("CHAOS_SECONDS", "20"))
WITHIN_S = 180.0
TOGETHER = 12


class Failing(Traffic):
    """Callers of whose requests a third fails at its first attempt: so few that no breaker opens."""

    def _messages(self) -> list[dict[str, str]]:
        fails = "fake:fail=1 " if self._random.random() < 0.35 else ""
        return [{"role": "user", "content": f"{fails}fake:sleep={self._random.uniform(0, 0.8):.3f}"}]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the points at which a process is to die."""
    return tmp_path_factory.mktemp("points") / "asked"


@pytest.fixture(scope="module")
def pools(asked: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system of two pools, whose processes die at named points where they are asked to."""
    folder = tmp_path_factory.mktemp("hand-over")
    source = folder / "source"
    copy_with_points(source, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(source)
        patch.setenv("PYTHONPATH", str(source))
        with running_system(folder / "data", "--catalog", str(CATALOG)) as system:
            system.wait_ready(*MODELS)
            yield system


def submit(client: httpx.Client, model: str, given: dict[str, Any]) -> str:
    answer = client.post("/v1/requests", json={"model": model, "input": given})
    assert answer.status_code == 202, answer.text
    request_id: str = answer.json()["id"]
    return request_id


def left_in_redis(system: System) -> list[str]:
    """Name the keys of requests that are left."""
    kept = ("jobs", "moved", "cancels", "attempts", "excused", "leases", "queue")
    with redis.Redis.from_url(system.redis_url) as connection:
        keys = [f"fg:{{{pool}}}:{what}" for pool in ("first", "second") for what in kept]
        return [key for key in keys if connection.exists(key)]


def handed_over(system: System) -> int:
    """Count the requests that workers have handed over, by their logs."""
    logs = system.data.rglob("*worker*.log*")
    return sum(log.read_text(errors="replace").count('"run.handed_over"') for log in logs)


def in_first(system: System) -> list[int]:
    """Say at which places among the workers those of the first pool stand."""
    workers = [each["name"] for each in system.connection()["processes"] if each["role"] == "worker"]
    return [at for at, name in enumerate(workers) if name.startswith("worker-first")]


@pytest.mark.parametrize("point", POINTS)
def test_a_process_that_dies_at_a_named_point_costs_nobody_twice(pools: System, asked: Path, point: str) -> None:
    """A worker before or after it hands over, a settler before or after it has put a request into its next queue."""
    pools.wait_ready(*MODELS)
    account, key = pools.account(f"{point}-{secrets.token_hex(3)}", "10")
    (asked / point).touch()
    words = {"messages": [{"role": "user", "content": "fake:fail=1"}]}
    with pools.client(key) as client:
        ids = [submit(client, "fake-chat", words) for _ in range(TOGETHER)]
        pictures = [submit(client, "fake-picture", {"prompt": "fake:fail=1"}) for _ in range(TOGETHER)]
        end = time.monotonic() + WITHIN_S
        while (asked / point).exists():
            assert time.monotonic() < end, f"nobody came to {point}"
            time.sleep(0.02)
        for request_id in [*ids, *pictures]:
            shown = finished(client, request_id, WITHIN_S)
            assert shown["status"] == "succeeded", shown
            attempts: Any = shown["attempts"]
            numbers = [each["attempt"] for each in attempts]
            assert numbers == sorted(set(numbers)), "attempts that tell of themselves have numbers of their own"
            assert attempts[-1]["outcome"] == "succeeded"
            if point != "before-hand-over":  # where its worker died first, the first pool itself tries again
                assert [each["reason"] for each in attempts] == ["engine_error", "done"]
        for request_id in pictures:
            files = sorted(path.name for path in (pools.data / "blobs").rglob(f"{request_id}-*"))
            attempt = client.get(f"/v1/requests/{request_id}").json()["attempt"]
            assert {name.split("-")[1] for name in files} == {str(attempt)}
    assert pools.balance(account)["spent_nanos"] == TOGETHER * (1_000_000 + 40_000_000)
    assert pools.balance(account)["held_nanos"] == 0
    assert left_in_redis(pools) == []
    assert verify_books(pools, allowed_repeats=MOST_AT_ONCE).broken == []


async def test_the_books_hold_while_what_hands_over_is_killed_and_paused(pools: System) -> None:
    """Workers of the first pool and the settler, at random, under callers whose first attempts often fail.

    The second pool stays: a pool without a living worker is no way to go on for what is admitted meanwhile.
    """
    _, key = pools.account(f"storm-{secrets.token_hex(3)}", "1000")
    before, chance = handed_over(pools), random.Random(5)
    traffic = Failing(pools.base_url, key, seed=5)
    traffic.start(submit=6, call=8, stream=4)
    faults = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or handed_over(pools) <= before + 20 or len(traffic.memory.accepted) <= SECONDS / 2:
        for role in ("worker", "settler", "worker", None):
            told = len(traffic.memory.told)
            await until("callers are answered again", lambda told=told: len(traffic.memory.told) >= told + ANSWERS)
            await asyncio.sleep(chance.uniform(0.1, 0.6))
            which = chance.choice(in_first(pools))
            await (kill(pools, role, which) if role else pause(pools, which))
            faults += 1
    await asyncio.sleep(1)
    await traffic.stop()
    await drain(pools)
    verdict = verify_books(pools, allowed_repeats=faults * MOST_AT_ONCE)
    assert (verdict.broken, verdict.open_requests) == ([], 0)
    assert len(traffic.memory.accepted) > SECONDS / 2
    assert handed_over(pools) > before + 20
    await hold_to_the_books(pools, key, traffic.memory)
    assert all(len(amounts) == 1 for amounts in (await charges(pools)).values())
    assert left_in_redis(pools) == []
