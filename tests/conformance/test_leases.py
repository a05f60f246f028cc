"""Leases, attempts, the fence, giving back, and giving up."""

import asyncio

import pytest

from gateway.contract.events import Frame, TextDelta
from tests.conformance.backends import POOL, SOON_S, Backend, ended, request, status, until, waiting


async def settled(backend: Backend) -> list[tuple[str, int, str]]:
    """Read the settlements: id, attempt, outcome of each."""
    entries = await backend.settler("reader", idle_ms=0).settlements([POOL], 1000, wait_s=0)
    return [(one.id, one.attempt, one.outcome) for _, entry in entries for one in entry.ended]


async def test_a_taking_says_when_by_the_servers_clock_and_which_attempt(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(), request()))
    first, second = await worker.take(2, wait_s=0)
    assert first.attempt == second.attempt == 1
    assert first.taken_us == second.taken_us > 1_700_000_000_000_000


async def test_an_expired_lease_is_taken_first_and_with_the_next_attempt(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    lost, other = request(), request(2)
    await gateway.enqueue(waiting(lost))
    await worker.take(1, wait_s=0)
    await gateway.enqueue(waiting(other))
    backend.expire(lost.id)
    swept = await backend.settler().sweep(POOL, 3)
    assert (swept.returned, swept.given_up) == (1, [])
    again = await worker.take(2, wait_s=0)
    assert [(taken.request.id, taken.attempt) for taken in again] == [(lost.id, 2), (other.id, 1)]


async def test_an_attempt_that_lost_its_lease_leaves_no_trace(backend: Backend) -> None:
    """Neither a settlement nor a frame; the winner's end is accepted, and it is the only one."""
    gateway, paused, quick = backend.gateway(), backend.worker(), backend.worker()
    heard: list[Frame] = []
    await backend.listen("gateway", heard.append)
    await gateway.enqueue(waiting(request(reply="gateway"), request(reply="gateway")))
    first, untouched = await paused.take(2, wait_s=0)
    backend.expire(first.request.id)
    await backend.settler().sweep(POOL, 3)
    [second] = await quick.take(9, wait_s=0)
    assert await paused.finish([ended(first), ended(untouched)]) == [first.request.id]
    assert await settled(backend) == [(untouched.request.id, 1, "succeeded")]
    assert await quick.finish([ended(second)]) == []
    await until(lambda: len(heard) >= 2)
    assert [(frame.id, frame.attempt) for frame in heard] == [(untouched.request.id, 1), (second.request.id, 2)]
    assert await paused.finish([ended(first)]) == [first.request.id]
    assert (await gateway.depth()).leased == 0


async def test_an_expired_lease_that_nobody_swept_is_still_the_same_attempt(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request()))
    [taken] = await worker.take(1, wait_s=0)
    backend.expire(taken.request.id)
    assert await worker.finish([ended(taken)]) == []
    assert await settled(backend) == [(taken.request.id, 1, "succeeded")]


async def test_a_heartbeat_keeps_leases_and_says_which_are_lost(backend: Backend) -> None:
    gateway, worker, other = backend.gateway(), backend.worker(), backend.worker()
    await gateway.enqueue(waiting(request(), request()))
    kept, lost = await worker.take(2, wait_s=0)
    backend.expire(kept.request.id, lost.request.id)
    ids = [kept.request.id, lost.request.id]
    assert (await worker.beat(ids, status())).lost == []
    backend.expire(lost.request.id)
    await backend.settler().sweep(POOL, 3)
    assert (await gateway.standing(kept.request.id)).state == "leased"
    assert len(await other.take(9, wait_s=0)) == 1
    assert (await worker.beat(ids, status())).lost == [lost.request.id]
    assert (await gateway.standing(lost.request.id)).state == "leased"


async def test_a_worker_that_lost_a_lease_is_not_heard_any_more(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    heard: list[Frame] = []
    await backend.listen("gateway", heard.append)
    await gateway.enqueue(waiting(request(reply="gateway", stream=True)))
    [taken] = await worker.take(1, wait_s=0)
    backend.expire(taken.request.id)
    await backend.settler().sweep(POOL, 3)
    await worker.beat([taken.request.id], status())
    await worker.emit([(taken.request, Frame(taken.request.id, 1, 0, TextDelta("late")))])
    await asyncio.sleep(0.05)
    assert heard == []


async def test_what_is_taken_too_often_is_failed_once(backend: Backend) -> None:
    """A poison request kills three workers and no more; its end tells whoever waits."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    poison = request(reply="gateway")
    await gateway.enqueue(waiting(poison))
    for attempt in (1, 2, 3):
        [taken] = await worker.take(1, wait_s=0)
        assert taken.attempt == attempt
        backend.expire(poison.id)
        swept = await settler.sweep(POOL, 3)
        assert swept.given_up == ([poison.id] if attempt == 3 else [])
    assert await worker.take(1, wait_s=0) == []
    [(_, entry)] = await settler.settlements([POOL], 10, wait_s=0)
    [end] = entry.ended
    assert (end.id, end.attempt, end.outcome, end.reason) == (poison.id, 3, "failed", "worker_lost")
    assert (end.price, end.reply) == (poison.price, "gateway")
    assert await worker.finish([ended(taken)]) == [poison.id]


async def test_giving_back_goes_to_the_front_and_is_not_counted(backend: Backend) -> None:
    """A request given back ten times is still not given up after one lost worker."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    first, second = request(), request()
    await gateway.enqueue(waiting(first, second))
    for _ in range(10):
        [taken] = await worker.take(1, wait_s=0)
        assert taken.request.id == first.id
        await worker.give_back([first.id])
    [taken] = await worker.take(1, wait_s=0)
    backend.expire(first.id)
    assert (await settler.sweep(POOL, 2)).returned == 1
    [taken] = await worker.take(1, wait_s=0)
    backend.expire(first.id)
    assert (await settler.sweep(POOL, 2)).given_up == [first.id]


async def test_who_gave_a_request_back_cannot_end_or_return_it_again(backend: Backend) -> None:
    gateway, draining, other = backend.gateway(), backend.worker(), backend.worker()
    await gateway.enqueue(waiting(request()))
    [given] = await draining.take(1, wait_s=0)
    await draining.give_back([given.request.id])
    [taken] = await other.take(1, wait_s=0)
    await draining.give_back([given.request.id])
    assert await draining.finish([ended(given)]) == [given.request.id]
    assert (await gateway.standing(given.request.id)).state == "leased"
    assert await other.finish([ended(taken)]) == []


@pytest.mark.parametrize("held", [0, 700])
async def test_one_heartbeat_serves_any_number_of_leases(backend: Backend, held: int) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(*(request() for _ in range(700))))
    ids: list[str] = []
    while len(ids) < held:
        ids += [taken.request.id for taken in await worker.take(held - len(ids), wait_s=0)]
    assert (await worker.beat(ids, status())).lost == []
    [seen] = await gateway.workers()
    assert seen.worker == "worker"


async def test_all_ends_of_a_large_batch_arrive(backend: Backend) -> None:
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    await gateway.enqueue(waiting(*(request() for _ in range(1200))))
    taken = [one for _ in range(3) for one in await worker.take(500, wait_s=0)]
    assert await worker.finish([ended(one) for one in taken]) == []
    entries = await settler.settlements([POOL], 100, wait_s=0)
    assert sorted(one.id for _, entry in entries for one in entry.ended) == sorted(one.request.id for one in taken)


async def test_a_worker_that_takes_its_lost_request_again_ends_the_later_attempt(backend: Backend) -> None:
    """The late end of its first attempt is fenced, and takes nothing from the second."""
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(keep=True)))
    [first] = await worker.take(1, wait_s=0)
    backend.expire(first.request.id)
    await backend.settler().sweep(POOL, 3)
    [second] = await worker.take(1, wait_s=0)
    assert await worker.finish([ended(first)]) == [first.request.id]
    await worker.emit([(second.request, Frame(second.request.id, 2, 0, TextDelta("heard")))])
    assert await worker.finish([ended(second)]) == []
    async with asyncio.timeout(SOON_S):
        entries = [entry async for entry, _ in gateway.events(first.request.id)]
    assert entries == ["2-0", "2-1"]
