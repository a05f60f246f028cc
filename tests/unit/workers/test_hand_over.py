"""What fails in one pool goes on in the next, unless nothing could do better there or the caller has heard of it."""

import asyncio
import time
from typing import Any

import pytest

from gateway.contract.events import Ended
from gateway.contract.request import Leg
from gateway.queues.port import Move
from tests.unit.workers.conftest import CHAT, LONG, POOL, SLOW, WITHIN_S, Pool

LEGS = [Leg("next", "other", 8, b"", ["up"]), Leg("third", "chat", 9, b"other input")]


async def outcomes(pool: Pool, count: int) -> list[Ended | Move]:
    """Wait for what comes of so many requests: their ends, or where they go on."""
    found: list[Ended | Move] = []
    async with asyncio.timeout(WITHIN_S):
        while len(found) < count:
            for _, entry in await pool.settler.settlements([POOL], 10, wait_s=0.1):
                found += [entry.move] if entry.move else entry.ended
    return found


async def outcome(pool: Pool) -> Ended | Move:
    """Wait for what comes of the one request."""
    [found] = await outcomes(pool, 1)
    return found


async def run(pool: Pool, model: str, prompt: str, **fields: Any) -> Ended | Move:
    await pool.serve(CHAT, LONG, SLOW)
    pool.start()
    await pool.until_ready()
    await pool.submit(model, prompt, **({"legs": LEGS} | fields))
    return await outcome(pool)


@pytest.mark.parametrize(
    ("model", "prompt", "reason"),
    [
        ("chat", "fake:fail", "engine_error"),
        ("chat", "fake:lose", "engine_lost"),
        ("gone", "hello", "engine_error"),
    ],
)
async def test_a_failed_attempt_goes_on_with_what_it_was_tried_at(
    pool: Pool, model: str, prompt: str, reason: str
) -> None:
    began_us = time.time_ns() // 1000
    move = await run(pool, model, prompt)
    assert isinstance(move, Move)
    request = move.request
    assert (move.pool, move.attempt, move.lost) == ("next", 1, False)
    assert (request.model, request.price, request.only, request.legs) == ("other", 8, ["up"], LEGS[1:])
    [step] = request.steps
    assert (step.name, step.model, step.pool, step.worker, step.attempt) == ("", model, POOL, "w1", 1)
    assert (step.outcome, step.reason, step.upstream) == ("failed", reason, False)
    await pool.until(lambda: not pool.state.leases)
    assert began_us <= request.enqueued_us <= time.time_ns() // 1000


async def test_requests_that_ran_beside_one_that_killed_their_engine_go_on_too(pool: Pool) -> None:
    await pool.serve(CHAT, SLOW)
    pool.start()
    await pool.until_ready()
    beside = await pool.submit("slow", "fake:sleep=60", legs=LEGS)
    await pool.until(lambda: beside in pool.state.leases)
    await pool.submit("chat", "fake:lose", legs=LEGS)
    moves = await outcomes(pool, 2)
    assert {move.request.id for move in moves if isinstance(move, Move)} >= {beside}
    assert [move.request.steps[0].reason for move in moves if isinstance(move, Move)] == ["engine_lost"] * 2


@pytest.mark.parametrize(
    ("model", "prompt", "fields", "reason"),
    [
        ("chat", "fake:refuse", {}, "refused_by_engine"),
        ("chat", "fake:fail", {"legs": []}, "engine_error"),
        ("chat", "hello", {"deadline_ms": 1}, "deadline"),
        ("chat", "hello", {"input": b"\xc1"}, "refused_by_engine"),
    ],
)
async def test_what_nothing_could_do_better_ends_here(
    pool: Pool, model: str, prompt: str, fields: dict[str, Any], reason: str
) -> None:
    end = await run(pool, model, prompt, **fields)
    assert isinstance(end, Ended)
    assert (end.reason, end.steps, end.pool) == (reason, [], "")


async def test_after_the_first_delta_a_failure_is_the_end(pool: Pool) -> None:
    """Of a stream that has begun, its engine lost under it."""
    await pool.serve(CHAT, LONG)
    pool.start()
    await pool.until_ready()
    heard = await pool.submit("long", "hello", legs=LEGS, stream=True)
    await pool.until_heard(heard, 3)
    await pool.submit("chat", "fake:lose", legs=[])
    ends = await outcomes(pool, 2)
    assert {(end.id, end.reason) for end in ends if isinstance(end, Ended)} >= {(heard, "engine_lost")}


async def test_a_cancelled_request_does_not_go_on(pool: Pool) -> None:
    await pool.serve(SLOW)
    pool.start()
    await pool.until_ready()
    one = await pool.submit("slow", "fake:sleep=60", legs=LEGS)
    await pool.until(lambda: one in pool.state.leases)
    assert await pool.cancel(one) == "told"
    end = await outcome(pool)
    assert isinstance(end, Ended)
    assert end.outcome == "cancelled"


async def test_the_end_of_a_later_leg_tells_what_was_tried_before(pool: Pool) -> None:
    """In its pool, and after all that the legs before came to."""
    move = await run(pool, "chat", "fake:fail")
    assert isinstance(move, Move)
    await pool.submit("chat", "hello", steps=move.request.steps, legs=[])
    end = await outcome(pool)
    assert isinstance(end, Ended)
    assert (end.outcome, end.pool, end.steps) == ("succeeded", POOL, move.request.steps)


async def test_a_handing_over_waits_for_redis_and_keeps_its_lease_meanwhile(pool: Pool) -> None:
    await pool.serve(SLOW)
    queue = pool.unsteady()
    pool.start(queue)
    await pool.until_ready()
    one = await pool.submit("slow", "fake:sleep=0.3 fake:fail", legs=LEGS)
    await pool.until(lambda: one in pool.state.leases)
    queue.away = True
    await asyncio.sleep(0.5)
    assert not pool.state.stream
    queue.away = False
    move = await outcome(pool)
    assert isinstance(move, Move)
    assert move.request.id == one
