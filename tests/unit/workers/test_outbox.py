"""What a worker has to say is said once, in order, and however long Redis is away."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from gateway.contract.events import TextDelta
from tests.unit.workers.conftest import CHAT, LONG, SLOW, STREAM, WITHIN_S
from workers import worker as worker_module

if TYPE_CHECKING:
    from tests.unit.workers.conftest import Pool


async def test_an_end_is_said_once_however_long_redis_is_away(pool: "Pool") -> None:
    queue = pool.unsteady()
    await pool.serve(SLOW)
    pool.start(queue)
    request_id = await pool.submit("slow")
    await pool.until(lambda: bool(pool.state.leases))
    queue.away = True
    await pool.until(lambda: queue.finishes >= 3)
    assert pool.state.stream == {}
    queue.away = False
    (end,) = await pool.ended()
    assert (end.id, end.attempt, end.outcome) == (request_id, 1, "succeeded")
    await asyncio.sleep(0.2)
    assert pool.state.stream == {}
    assert (await pool.queue.depth()).leased == 0


async def test_deltas_come_whole_and_in_order_after_redis_was_away(pool: "Pool") -> None:
    queue = pool.unsteady()
    await pool.serve(STREAM)
    queue.leaves_at = 2
    pool.start(queue)
    request_id = await pool.submit("stream", stream=True)
    await pool.until(lambda: queue.emits >= 5)
    assert len(pool.frames_of(request_id)) < 21
    queue.away, queue.leaves_at = False, None
    await pool.until_heard(request_id, 21)
    assert [frame.seq for frame in pool.frames_of(request_id)] == list(range(21))


async def test_a_lease_that_ran_out_while_redis_was_away_fences_the_end(pool: "Pool") -> None:
    queue = pool.unsteady()
    await pool.serve(SLOW)
    pool.start(queue)
    request_id = await pool.submit("slow")
    await pool.until(lambda: bool(pool.state.leases))
    queue.away = True
    await pool.until(lambda: queue.finishes >= 1)
    assert (await pool.expire_leases()).returned == 1
    pool.start()
    (end,) = await pool.ended()
    assert (end.id, end.attempt, end.worker) == (request_id, 2, "w2")
    queue.away = False
    await asyncio.sleep(0.3)
    assert pool.state.stream == {}
    await pool.submit("slow")
    assert (await pool.ended())[0].outcome == "succeeded"


async def test_a_worker_works_again_after_redis_was_away(pool: "Pool") -> None:
    queue = pool.unsteady()
    await pool.serve(CHAT)
    pool.start(queue)
    await pool.until_ready()
    queue.away = True
    await asyncio.sleep(0.2)
    queue.away = False
    await pool.submit("chat")
    assert (await pool.ended())[0].outcome == "succeeded"


async def test_a_worker_does_not_take_more_while_its_ends_are_not_acknowledged(pool: "Pool") -> None:
    """What has ended and is not acknowledged counts as held: nothing grows while Redis answers only to takes."""
    queue = pool.unsteady()
    await pool.serve(CHAT)
    pool.start(queue, max_concurrency=8)
    await pool.until_ready()
    queue.away = queue.takes_meanwhile = True
    await pool.submit_all([("chat", "hello")] * 50)
    await pool.until(lambda: len(pool.state.leases) == 8)
    await asyncio.sleep(0.3)
    assert (await pool.queue.depth()).leased == 8
    queue.away = False
    assert len(await pool.ended(50)) == 50


async def test_a_drain_ends_even_where_redis_stays_away(pool: "Pool", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "FLUSH_S", 0.2)
    queue = pool.unsteady()
    await pool.serve(LONG)
    worker, task = pool.start(queue, drain_s=0.2)
    request_id = await pool.submit("long", stream=True)
    await pool.until_heard(request_id, 1)
    queue.away = True
    worker.stopping.set()
    async with asyncio.timeout(WITHIN_S):
        await task
    assert pool.state.stream == {}
    assert all(isinstance(frame.event, TextDelta) for frame in pool.frames_of(request_id))
