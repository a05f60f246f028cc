"""The life of a worker: waiting for its pool, loading, draining, losing its engine."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing

from gateway.blobs.local import LocalBlobs
from gateway.contract.events import Choice, Output, TextOutput
from gateway.contract.pools import ModelState, ServedModel
from gateway.queues import port as queue_port
from gateway.queues.memory import MemoryQueues
from tests.unit.workers.conftest import CHAT, LONG, POOL, SLOW, STREAM, WITHIN_S
from workers import worker as worker_module
from workers.ends import Place
from workers.engine import Report, Run
from workers.engines import ENGINES
from workers.outputs import Outputs
from workers.run import Runner
from workers.worker import Exit

if TYPE_CHECKING:
    from tests.unit.workers.conftest import Pool

BROKEN = ServedModel(name="broken", tasks=["chat"], options={"nonsense": 1})


async def test_a_worker_waits_until_its_pool_is_known(pool: "Pool") -> None:
    await pool.submit("chat")
    pool.start()
    await asyncio.sleep(0.3)
    assert await pool.status() is None
    await pool.serve(CHAT)
    (end,) = await pool.ended()
    assert end.outcome == "succeeded"


async def test_a_heartbeat_says_how_the_worker_stands(pool: "Pool") -> None:
    await pool.serve(CHAT, SLOW, BROKEN)
    pool.start(drain_s=0.1)
    await pool.submit("slow", "fake:hang")
    await pool.until(lambda: any(status.running for _, status in pool.state.workers.values()))
    status = await pool.status()
    assert status is not None
    assert (status.pool, status.engine, status.running, status.capacity) == (POOL, "fake", 1, 2)
    assert {name: state.state for name, state in status.models.items()} == {
        "chat": "ready",
        "slow": "ready",
        "broken": "failed",
    }
    assert "nonsense" in status.models["broken"].detail
    assert status.memory_bytes > 1_000_000
    assert not status.draining


async def test_a_model_that_could_not_be_loaded_fails_its_requests_and_no_others(pool: "Pool") -> None:
    await pool.serve(CHAT, BROKEN)
    pool.start()
    await pool.submit("broken")
    (end,) = await pool.ended()
    assert (end.outcome, end.reason, end.forward_began) == ("failed", "engine_error", False)
    assert "broken" in end.detail
    await pool.submit("chat")
    assert (await pool.ended())[0].outcome == "succeeded"


async def test_a_worker_without_any_model_shows_why_and_exits_to_try_again(
    pool: "Pool", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "FAILED_S", 0.2)
    await pool.serve(BROKEN)
    await pool.submit("broken")
    _, task = pool.start()
    assert await task is Exit.NOT_LOADED
    status = await pool.status()
    assert status is not None
    assert status.models["broken"].state == "failed"
    assert (await pool.queue.depth()).waiting == 1


async def test_an_engine_that_is_not_installed_is_named_in_the_log(
    pool: "Pool", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "FAILED_S", 0.2)
    monkeypatch.setitem(ENGINES, "fake", "workers.engines.absent:Absent")
    await pool.serve(CHAT)
    with structlog.testing.capture_logs() as logs:
        _, task = pool.start()
        assert await task is Exit.NOT_LOADED
    assert {"event": "worker.engine_not_installed", "engine": "fake"}.items() <= logs[1].items()


async def test_draining_finishes_what_runs_and_leaves_the_rest_in_the_queue(pool: "Pool") -> None:
    await pool.serve(SLOW)
    worker, task = pool.start()
    await pool.submit_all([("slow", "hello")] * 5)
    await pool.until(lambda: len(pool.state.leases) == 2)
    worker.stopping.set()
    assert await task is Exit.DRAINED
    ended = await pool.ended(2)
    assert [end.outcome for end in ended] == ["succeeded", "succeeded"]
    depth = await pool.queue.depth()
    assert (depth.waiting, depth.leased) == (3, 0)


async def test_what_a_draining_worker_takes_too_late_goes_back_at_no_cost(pool: "Pool") -> None:
    await pool.serve(CHAT)
    worker, task = pool.start(take_wait_s=0.5)
    await pool.until_ready()
    worker.stopping.set()
    await asyncio.sleep(0.05)
    await pool.submit("chat")
    assert await task is Exit.DRAINED
    assert (await pool.queue.depth()).waiting == 1
    pool.start()
    (end,) = await pool.ended()
    assert (end.outcome, end.worker) == ("succeeded", "w2")


async def test_a_drain_does_not_wait_for_ever(pool: "Pool") -> None:
    """What runs longer than the limit leaves no end; its lease runs out and another worker takes it."""
    await pool.serve(CHAT)
    worker, task = pool.start(drain_s=0.2)
    request_id = await pool.submit("chat", "fake:hang=1")
    await pool.until(lambda: bool(pool.state.leases))
    worker.stopping.set()
    async with asyncio.timeout(WITHIN_S):
        assert await task is Exit.DRAINED
    assert pool.state.stream == {}
    assert (await pool.expire_leases()).returned == 1
    pool.start()
    (end,) = await pool.ended()
    assert (end.id, end.attempt, end.outcome, end.worker) == (request_id, 2, "succeeded", "w2")


async def test_a_lost_engine_fails_its_requests_and_ends_the_worker(pool: "Pool") -> None:
    await pool.serve(CHAT, LONG)
    _, task = pool.start()
    streaming = await pool.submit("long", stream=True)
    await pool.until_heard(streaming, 5)
    losing = await pool.submit("chat", "fake:lose")
    assert await task is Exit.ENGINE_LOST
    ended = {end.id: end for end in await pool.ended(2)}
    assert {end.reason for end in ended.values()} == {"engine_lost"}
    assert ended[streaming].units.output_tokens >= 5
    assert ended[losing].units.output_tokens == 0


async def test_a_worker_drains_when_its_pool_is_to_serve_something_else(pool: "Pool") -> None:
    await pool.serve(STREAM)
    _, task = pool.start(spec_s=0.05)
    await pool.submit("stream")
    await pool.until(lambda: bool(pool.state.leases))
    await pool.serve(STREAM, CHAT)
    assert await task is Exit.SPEC_CHANGED
    assert (await pool.ended())[0].outcome == "succeeded"


async def test_workers_share_a_pool_and_no_request_runs_twice(pool: "Pool") -> None:
    await pool.serve(CHAT, STREAM)
    pool.start()
    pool.start()
    wanted = await pool.submit_all([("chat", "hello"), ("stream", "hello")] * 200)
    ended = await pool.ended(400)
    assert sorted(end.id for end in ended) == sorted(wanted)
    assert {end.attempt for end in ended} == {1}


def _waiting(pool: "Pool", model: str, prompt: str = "hello") -> queue_port.Waiting:
    return queue_port.Waiting(pool.request(model, prompt))


class Crowded:
    """An engine that runs one request and lets the others wait inside, as engines with a queue of their own do."""

    def __init__(self) -> None:
        self.turn = asyncio.Semaphore(1)
        self.enough = asyncio.Event()

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        for model in models:
            report(model.name, ModelState(state="ready"))

    def capacity(self) -> int:
        return 10

    def run(self, run: Run) -> Output | Coroutine[Any, Any, Output]:
        prompt = run.input.messages[0].content  # type: ignore[union-attr]
        if prompt.startswith("unspeak"):
            raise ZeroDivisionError(prompt)
        return self._run(run)

    async def _run(self, run: Run) -> Output:
        async with self.turn:
            run.began()
            await self.enough.wait()
        return TextOutput([Choice("done")])

    def failure(self) -> Exception | None:
        return None

    async def unload(self) -> None:
        pass


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[tuple[Runner, MemoryQueues, Crowded]]:
    """Answer a runner on an engine that lets requests wait inside, and its queues."""
    queues, engine = MemoryQueues(), Crowded()
    made = Runner(queues.worker(POOL), engine, Outputs(LocalBlobs(tmp_path), 1000), Place("w", POOL))
    made.models = ["m"]
    sending = asyncio.create_task(made.outbox.send())
    yield made, queues, engine
    sending.cancel()


async def test_what_the_engine_has_not_begun_goes_back_at_no_cost(
    pool: "Pool", runner: tuple[Runner, MemoryQueues, Crowded]
) -> None:
    running, queues, engine = runner
    await queues.pool(POOL).enqueue([_waiting(pool, "m") for _ in range(4)])
    queue = running._queue
    for taken in await queue.take(10, wait_s=0):
        running.start(taken)
    await asyncio.sleep(0.05)
    await running.give_back()
    depth = await queues.pool(POOL).depth()
    assert (depth.leased, depth.waiting) == (1, 3)
    engine.enough.set()
    await running.drain(WITHIN_S)
    (_, entry), *more = await queues.settler().settlements([POOL], 10, wait_s=0)
    assert ([end.outcome for end in entry.ended], more) == (["succeeded"], [])


async def test_a_fault_in_an_engine_fails_one_request_and_tells_the_caller_nothing_of_it(
    pool: "Pool", runner: tuple[Runner, MemoryQueues, Crowded]
) -> None:
    running, queues, engine = runner
    await queues.pool(POOL).enqueue([_waiting(pool, "m", "unspeak" + "able"), _waiting(pool, "m")])
    with structlog.testing.capture_logs() as logs:
        for taken in await running._queue.take(10, wait_s=0):
            running.start(taken)
    assert logs[0]["error"] == "ZeroDivisionError"
    assert "unspeakable" not in str(logs)
    engine.enough.set()
    await running.drain(WITHIN_S)
    entries = await queues.settler().settlements([POOL], 10, wait_s=0)
    ended = [end for _, entry in entries for end in entry.ended]
    assert [(end.outcome, end.reason, end.detail) for end in ended] == [
        ("failed", "engine_error", ""),
        ("succeeded", "done", ""),
    ]
    assert running.unexpected_errors == 1


async def test_a_worker_that_is_told_off_ends_what_it_runs_and_takes_no_more_until_told_on(pool: "Pool") -> None:
    await pool.serve(CHAT, SLOW)
    pool.start()
    operator = pool.queues.operator(POOL)
    running = await pool.submit("slow")
    await pool.until(lambda: running in pool.state.leases)
    assert await operator.drain("w1", on=True)
    await pool.until(lambda: any(status.draining for _, status in pool.state.workers.values()))
    later = await pool.submit("chat")
    (end,) = await pool.ended()
    assert (end.id, end.outcome) == (running, "succeeded")
    assert (await pool.queue.standing(later)).state == "queued"
    assert await operator.drain("w1", on=False)
    (end,) = await pool.ended()
    assert (end.id, end.outcome) == (later, "succeeded")
    await pool.until(lambda: not any(status.draining for _, status in pool.state.workers.values()))
    [(_, status)] = pool.state.workers.values()
    assert 0 < status.times.busy_ms <= status.times.up_ms
    assert 0 <= status.times.load_ms <= status.times.up_ms
