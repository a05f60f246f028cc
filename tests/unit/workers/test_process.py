"""Real worker processes on a real Valkey: killed, paused, drained."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import redis

from gateway.contract.events import Ended
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ChatInput
from gateway.contract.inputs.text import Message
from gateway.contract.pools import PoolSpec, ServedModel
from gateway.contract.request import Request, encode_input
from gateway.queues.keys import keys_of
from gateway.queues.port import Waiting
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler

POOL = "p"
ROOT = Path(__file__).parents[3]
LEASE_MS = 900_000  # here leases run out where a test says so
WITHIN_S = 120.0
ATTEMPTS = 3
MODELS = [
    ServedModel(name="chat", tasks=["chat"]),
    ServedModel(name="slow", tasks=["chat"], options={"work_ms": 800}),
]


class Fleet:
    """A pool in Valkey, its settler and sweeper, and worker processes that are started again when they die."""

    def __init__(self, url: str, logs: Path) -> None:
        self.url = url
        self.queues = RedisQueues(url)
        self.queue = self.queues.pool(POOL)
        self.settler = RedisSettler(url, "s", idle_ms=LEASE_MS)
        self.logs = logs
        self.processes: list[asyncio.subprocess.Process] = []

    async def start(self, name: str) -> asyncio.subprocess.Process:
        """Start a worker."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith("FAREGATE_")}
        environ |= {"FAREGATE_WORKER_REDIS_URL": self.url, "FAREGATE_WORKER_NAME": name}
        with (self.logs / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "workers", "--pool", POOL, cwd=ROOT, env=environ, stderr=log
            )
        self.processes.append(process)
        return process

    async def until_ready(self, *names: str) -> None:
        """Wait until these workers have loaded."""
        async with asyncio.timeout(WITHIN_S):
            while set(names) - {one.worker for one in await self.queue.workers() if one.capacity}:
                await asyncio.sleep(0.02)

    async def until_leased(self, count: int) -> None:
        """Wait until so many requests are under lease."""
        async with asyncio.timeout(WITHIN_S):
            while (await self.queue.depth()).leased != count:
                await asyncio.sleep(0.005)

    async def until_begun(self, request_id: str) -> None:
        """Wait until a worker has begun a request that is kept."""
        async with asyncio.timeout(WITHIN_S):
            while await self.queue.latest(request_id) is None:
                await asyncio.sleep(0.005)

    async def expire(self) -> None:
        """Let all leases run out now."""
        leases = keys_of(POOL).leases
        with redis.Redis.from_url(self.url) as client:
            if held := client.zrange(leases, 0, -1):
                client.zadd(leases, dict.fromkeys(held, 0), xx=True)

    async def submit(self, *prompts: str, model: str = "chat", keep: bool = False) -> list[str]:
        """Enqueue requests."""
        requests = []
        for prompt in prompts:
            given = ChatInput(messages=[Message(role="user", content=prompt)])
            requests.append(Request(new_request_id(), 1, model, "chat", encode_input(given), 7, keep=keep))
        await self.queue.enqueue([Waiting(request) for request in requests])
        return [request.id for request in requests]

    async def ended(self, count: int) -> list[Ended]:
        """Sweep and read settlements until so many requests have ended."""
        found: list[Ended] = []
        async with asyncio.timeout(WITHIN_S):
            while len(found) < count:
                await self.settler.sweep(POOL, ATTEMPTS)
                for pool, entry in await self.settler.settlements([POOL], 100, wait_s=0.05):
                    found += entry.ended
                    await self.settler.settled([(pool, entry.entry)])
        return found

    async def close(self) -> None:
        """Kill what runs."""
        for process in self.processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
        await self.settler.close()
        await self.queues.close()


@pytest.fixture
async def fleet(redis_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    made = Fleet(redis_url, tmp_path)
    await made.queue.publish_spec(PoolSpec(pool=POOL, engine="fake", models=MODELS, lease_ms=LEASE_MS))
    yield made
    await made.close()


async def test_a_terminated_worker_finishes_what_runs_and_exits_with_0(fleet: Fleet) -> None:
    process = await fleet.start("w1")
    await fleet.until_ready("w1")
    [request_id] = await fleet.submit("a secret fake:sleep=1.5", keep=True)
    await fleet.until_begun(request_id)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    (end,) = await fleet.ended(1)
    assert (end.outcome, end.worker) == ("succeeded", "w1")
    log = (fleet.logs / "w1.log").read_text()
    assert '"action": "worker.draining"' in log
    assert "secret" not in log


async def test_a_killed_workers_requests_run_again_elsewhere(fleet: Fleet) -> None:
    process = await fleet.start("w1")
    await fleet.until_ready("w1")
    wanted = await fleet.submit(*["fake:hang=1"] * 20, model="slow")
    await fleet.until_leased(20)
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    await fleet.expire()
    await fleet.start("w2")
    ended = await fleet.ended(20)
    assert sorted(end.id for end in ended) == sorted(wanted)
    assert {(end.outcome, end.attempt, end.worker) for end in ended} == {("succeeded", 2, "w2")}


async def test_a_poison_request_is_given_up_and_its_neighbours_run(fleet: Fleet) -> None:
    """It kills every worker that takes it; after the allowed attempts it is failed, and the pool lives on."""
    poison, *others = await fleet.submit("fake:crash", "hello", "hello")
    ending = asyncio.create_task(fleet.ended(3))
    deaths = 0
    while not ending.done():
        process = await fleet.start(f"w{deaths}")
        await asyncio.wait({ending, dying := asyncio.create_task(process.wait())}, return_when="FIRST_COMPLETED")
        if dying.done():
            assert process.returncode == -signal.SIGKILL
            deaths += 1
            await fleet.expire()
        dying.cancel()
    ended = {end.id: end for end in await ending}
    assert deaths == ATTEMPTS
    assert (ended[poison].outcome, ended[poison].reason) == ("failed", "worker_lost")
    assert [ended[other].outcome for other in others] == ["succeeded", "succeeded"]


async def test_a_paused_worker_is_fenced_when_it_wakes(fleet: Fleet) -> None:
    paused = await fleet.start("w1")
    await fleet.until_ready("w1")
    wanted = await fleet.submit(*["fake:sleep=2"] * 5, model="slow")
    await fleet.until_leased(5)
    paused.send_signal(signal.SIGSTOP)
    while psutil.Process(paused.pid).status() != psutil.STATUS_STOPPED:
        await asyncio.sleep(0.01)
    await fleet.start("w2")
    await asyncio.gather(fleet.until_ready("w2"), asyncio.sleep(1.5))  # what it waits for in Redis is over by then
    await fleet.expire()
    ended = await fleet.ended(5)
    assert sorted(end.id for end in ended) == sorted(wanted)
    assert {(end.attempt, end.worker) for end in ended} == {(2, "w2")}
    paused.send_signal(signal.SIGCONT)
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert await fleet.settler.settlements([POOL], 10, wait_s=0.1) == []
    assert paused.returncode is None
    await fleet.submit("hello")
    assert (await fleet.ended(1))[0].outcome == "succeeded"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "redis_url"),
        (("--pool", "p"), "redis_url"),
        pytest.param(("make-tiny", "/dev/null", "no-such-model"), "no-such-model", marks=pytest.mark.vllm),
    ],
)
async def test_a_worker_that_cannot_start_says_why_in_a_line(arguments: tuple[str, ...], words: str) -> None:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("FAREGATE_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "workers", *arguments, cwd=ROOT, env=environ, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert words in said.decode()
    assert said.decode().count("\n") == 1
