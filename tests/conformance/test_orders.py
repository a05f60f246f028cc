"""Operators stop and start the taking, of a pool or of one worker, and see who stands where."""

import asyncio
import time

from tests.conformance.backends import POOL, SOON_S, Backend, InRedis, ended, request, status, waiting


async def test_nobody_takes_from_a_paused_pool_and_what_runs_goes_on(backend: Backend) -> None:
    gateway, worker, operator = backend.gateway(), backend.worker(), backend.operator()
    first, second = request(), request()
    await gateway.enqueue(waiting(first))
    [running] = await worker.take(1, wait_s=0)
    assert await operator.pause(on=True) is True
    assert await operator.pause(on=True) is False
    assert await gateway.enqueue(waiting(second)) == 1
    assert await worker.take(1, wait_s=0.1) == []
    assert await worker.finish([ended(running)]) == []
    look = await operator.look(10)
    assert (look.paused, look.waiting, look.leased, look.head) == (True, 1, 0, [second.id])


async def test_a_taker_that_slept_through_a_pause_is_woken_when_it_is_over(backend: Backend) -> None:
    """The wake-up of what came meanwhile was spent on nothing, so lifting the pause leaves another."""
    gateway, worker, operator = backend.gateway(), backend.worker(), backend.operator()
    await operator.pause(on=True)
    taking = asyncio.ensure_future(worker.take(1, wait_s=120))
    await asyncio.sleep(0.1)
    one = request()
    await gateway.enqueue(waiting(one))
    await asyncio.sleep(0.1)
    assert not taking.done()
    assert await operator.pause(on=False) is True
    assert await operator.pause(on=False) is False
    [taken] = await asyncio.wait_for(taking, SOON_S)
    assert taken.request.id == one.id


async def test_a_worker_hears_with_its_heartbeat_that_it_is_to_take_no_more(backend: Backend) -> None:
    worker, operator = backend.worker(), backend.operator()
    assert not (await worker.beat([], status("one"))).drain
    assert not (await worker.beat([], status("two"))).drain
    assert await operator.drain("one", on=True) is True
    assert await operator.drain("one", on=True) is False
    assert (await operator.look(0)).drained == {"one"}
    assert (await worker.beat([], status("one"))).drain
    assert not (await worker.beat([], status("two"))).drain
    assert await operator.drain("one", on=False) is True
    assert not (await worker.beat([], status("one"))).drain


async def test_a_drained_worker_keeps_its_leases(backend: Backend) -> None:
    worker, operator = backend.worker(), backend.operator()
    await backend.gateway().enqueue(waiting(request()))
    [taken] = await worker.take(1, wait_s=0)
    await worker.beat([taken.request.id], status("one"))
    await operator.drain("one", on=True)
    beat = await worker.beat([taken.request.id], status("one"))
    assert (beat.lost, beat.cancelled, beat.drain) == ([], [], True)
    assert await worker.finish([ended(taken)]) == []


async def test_who_is_not_there_cannot_be_drained(backend: Backend) -> None:
    operator = backend.operator()
    assert await operator.drain("nobody", on=True) is None
    assert await operator.drain("", on=True) is None
    assert (await operator.look(0)).drained == frozenset()


async def test_a_look_counts_who_came_and_shows_the_head_in_fair_order(backend: Backend) -> None:
    gateway, worker, operator = backend.gateway(), backend.worker(), backend.operator()
    flood, single = [request(1) for _ in range(5)], request(2)
    await gateway.enqueue(waiting(*flood))
    await gateway.enqueue(waiting(single, flood[0]))
    began_s = time.monotonic()
    await worker.beat([], status("one"))
    look = await operator.look(3)
    assert (look.waiting, look.entered, len(look.head)) == (6, 6, 3)
    assert single.id in look.head[:2], "the other account's one request stands beside the first of the flood"
    [seen] = look.workers
    assert seen.status.worker == "one"
    assert 0 <= seen.age_ms < (time.monotonic() - began_s) * 1000 + 1000
    await worker.take(6, wait_s=0)
    assert (await operator.look(3)).entered == 6


async def test_an_order_goes_with_its_worker(in_redis: InRedis) -> None:
    """A worker's name holds its process id, so that what is left of it would never be meant again."""
    await in_redis.worker().beat([], status("one"))
    operator = in_redis.operator()
    await operator.drain("one", on=True)
    in_redis.client.hset("fg:{pool}:workers", "one", b"1000 x")  # last heard of half a century ago
    await in_redis.settler().sweep(POOL, 3)
    assert (await operator.look(0)).drained == frozenset()
