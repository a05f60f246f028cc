"""A request that fails in one pool goes on in the next, and is in one queue at a time."""

import asyncio
from typing import Any

import msgspec

from gateway.contract.events import Ended, Event, Frame, Progress, Started, TextDelta
from gateway.contract.request import Request
from gateway.queues.keys import keys_of
from gateway.queues.port import Cancel, Standing, Waiting
from tests.conformance.backends import (
    POOL,
    SOON_S,
    Backend,
    InMemory,
    InRedis,
    carry,
    ended,
    onward,
    request,
    status,
    stopped,
    until,
    waiting,
)

NEXT, THIRD = "next", "third"


async def handed_over(backend: Backend, one: Request) -> None:
    """Put a request in, let its first attempt fail, and leave it on its way to the next pool."""
    await backend.gateway().enqueue(waiting(one))
    worker = backend.worker()
    [taken] = await worker.take(1, wait_s=0)
    assert await worker.hand_over([onward(taken)]) == []


async def test_a_request_goes_on_in_its_next_pool_and_its_attempts_count_on(backend: Backend) -> None:
    """Also over a third pool, whose own attempts are counted anew towards giving up."""
    one = request(legs=[NEXT, THIRD])
    await handed_over(backend, one)
    [move] = await carry(backend, POOL)
    assert (move.request.model, move.request.price, [leg.pool for leg in move.request.legs]) == (
        f"model of {NEXT}",
        8,
        [THIRD],
    )
    worker = backend.worker(NEXT)
    [taken] = await worker.take(9, wait_s=0)
    assert (taken.request, taken.attempt, taken.excused) == (move.request, 2, 1)
    assert [(step.pool, step.attempt) for step in taken.request.steps] == [(POOL, 1)]
    assert await worker.hand_over([onward(taken, NEXT)]) == []
    await carry(backend, POOL, NEXT)
    third, settler = backend.worker(THIRD), backend.settler()
    for attempt in (3, 4):
        [taken] = await third.take(9, wait_s=0)
        assert (taken.request.id, taken.attempt, taken.excused) == (one.id, attempt, 2)
        backend.expire(one.id, pool=THIRD)
        swept = await settler.sweep(THIRD, 2)
    assert swept.given_up == [one.id]
    [(_, entry)] = await settler.settlements([THIRD], 9, wait_s=0)
    assert (entry.ended[0].attempt, entry.ended[0].pool, len(entry.ended[0].steps)) == (4, THIRD, 2)


async def test_who_lost_the_lease_hands_nothing_over(backend: Backend) -> None:
    """A worker that was paused finds another attempt in its place: nothing goes to the next pool."""
    one = request(legs=[NEXT])
    await backend.gateway().enqueue(waiting(one))
    paused, quick = backend.worker(), backend.worker()
    [first] = await paused.take(1, wait_s=0)
    backend.expire(one.id)
    await backend.settler().sweep(POOL, 3)
    [second] = await quick.take(1, wait_s=0)
    assert await paused.hand_over([onward(first)]) == [one.id]
    assert await carry(backend, POOL) == []
    assert (await backend.gateway().standing(one.id)) == Standing("leased", attempt=2)
    assert await quick.finish([ended(second)]) == []


async def test_handing_over_again_changes_nothing(backend: Backend) -> None:
    """The answer to the first try may have been lost: the second says the same, and sends nothing twice."""
    one = request(legs=[NEXT], keep=True)
    await backend.gateway().enqueue(waiting(one))
    worker = backend.worker()
    [taken] = await worker.take(1, wait_s=0)
    assert await worker.hand_over([onward(taken)]) == []
    assert await worker.hand_over([onward(taken)]) == []
    assert len(await carry(backend, POOL)) == 1
    assert (await backend.gateway(NEXT).depth()).waiting == 1


async def test_what_has_left_is_not_put_into_its_old_pool_again(backend: Backend) -> None:
    """Neither on its way, nor in its new queue, nor under lease there; afterwards it may go."""
    gateway, settler, one = backend.gateway(), backend.settler(), request(legs=[NEXT])
    await handed_over(backend, one)
    for _ in range(2):
        await gateway.enqueue(waiting(one))
        assert (await gateway.depth()).waiting == 0
        assert await settler.missing(POOL, [one.id]) == {}
        await carry(backend, POOL)
    worker = backend.worker(NEXT)
    [taken] = await worker.take(1, wait_s=0)
    assert await settler.missing(POOL, [one.id]) == {}
    await worker.finish([ended(taken)])
    assert await settler.missing(POOL, [one.id]) == {}
    entries = await settler.settlements([NEXT], 9, wait_s=0)
    await settler.settled([(pool, entry.entry) for pool, entry in entries])
    await settler.forget(POOL, [one.id])
    assert await settler.missing(POOL, [one.id]) == {one.id: 0}


async def test_who_asks_the_old_pool_is_told_where_the_request_stands(backend: Backend) -> None:
    gateway, one = backend.gateway(), request(legs=[NEXT])
    await handed_over(backend, one)
    assert await gateway.standing(one.id) == Standing("absent", pool=NEXT)
    await backend.gateway(NEXT).enqueue(waiting(request(2), cost=0.5))
    await carry(backend, POOL)
    assert await gateway.standing(one.id) == Standing("queued", position=1, pool=NEXT)
    await backend.worker(NEXT).take(2, wait_s=0)
    assert await gateway.standing(one.id) == Standing("leased", attempt=2, pool=NEXT)


async def test_a_cancel_follows_a_request_into_its_new_pool(backend: Backend) -> None:
    """While it waits there, and while it runs there; the end of one that waits tells what was tried."""
    gateway, running, queued = backend.gateway(), request(legs=[NEXT]), request(legs=[NEXT], keep=True)
    await handed_over(backend, running)
    await carry(backend, POOL)
    worker = backend.worker(NEXT)
    [taken] = await worker.take(1, wait_s=0)
    await handed_over(backend, queued)
    await carry(backend, POOL)
    assert await gateway.cancel(stopped(queued)) == "removed"
    [(pool, entry)] = await backend.settler().settlements([POOL, NEXT], 9, wait_s=0)
    [end] = entry.ended
    assert (pool, end.id, end.reason, end.pool) == (NEXT, queued.id, "cancelled_by_caller", NEXT)
    assert [(step.pool, step.reason) for step in end.steps] == [(POOL, "engine_error")]
    assert await gateway.cancel(stopped(running)) == "told"
    beat = await worker.beat([running.id], status())
    assert beat.cancelled == [Cancel(running.id, "cancelled_by_caller")]
    assert await worker.finish([ended(taken)]) == []


async def test_a_cancel_on_the_way_stops_the_request_where_it_arrives(backend: Backend) -> None:
    one = request(legs=[NEXT])
    await handed_over(backend, one)
    assert await backend.gateway().cancel(stopped(one)) == "absent"
    await carry(backend, POOL)
    assert await backend.worker(NEXT).take(1, wait_s=0) == []
    [(_, entry)] = await backend.settler().settlements([NEXT], 9, wait_s=0)
    assert (entry.ended[0].id, entry.ended[0].outcome) == (one.id, "cancelled")


async def test_a_cancel_that_the_failing_worker_did_not_hear_is_not_lost(backend: Backend) -> None:
    one = request(legs=[NEXT])
    await backend.gateway().enqueue(waiting(one))
    worker = backend.worker()
    [taken] = await worker.take(1, wait_s=0)
    assert await backend.gateway().cancel(stopped(one)) == "told"
    assert await worker.hand_over([onward(taken)]) == []
    await carry(backend, POOL)
    assert await backend.worker(NEXT).take(1, wait_s=0) == []


async def test_the_events_of_a_kept_request_go_on_in_its_new_pool(backend: Backend) -> None:
    """For one who listens all the while, and for one who comes back with the id of any event."""
    gateway, one = backend.gateway(), request(keep=True, legs=[NEXT])
    await gateway.enqueue(waiting(one))
    first, second = backend.worker(), backend.worker(NEXT)
    [taken] = await first.take(1, wait_s=0)
    await first.emit([(taken.request, Frame(one.id, 1, -1, Started("first")))])
    heard: list[tuple[str, Event]] = []
    listening = asyncio.ensure_future(_collect(gateway.events(one.id), heard))
    await until(lambda: bool(heard))
    await first.hand_over([onward(taken)])
    assert await gateway.latest(one.id) is None
    await carry(backend, POOL)
    [taken] = await second.take(1, wait_s=0)
    await second.emit([(taken.request, Frame(one.id, 2, -1, Progress(0.5)))])
    assert await gateway.latest(one.id) == Progress(0.5)
    await second.emit([(taken.request, Frame(one.id, 2, 0, TextDelta("word")))])
    assert await second.finish([ended(taken)]) == []
    await asyncio.wait_for(listening, SOON_S)
    assert [at for at, _ in heard] == ["1-0", "2-0", "2-1", "2-2"]
    for place in range(3):
        again: list[tuple[str, Event]] = []
        await asyncio.wait_for(_collect(gateway.events(one.id, heard[place][0]), again), SOON_S)
        assert again == heard[place + 1 :]


async def test_a_request_may_come_back_to_a_pool_that_it_left(backend: Backend) -> None:
    """To the same pool at once, and over another: the words left behind do not lead in a circle."""
    gateway, one = backend.gateway(), request(keep=True, legs=[POOL, NEXT, POOL])
    heard: list[tuple[str, Event]] = []
    listening = asyncio.ensure_future(_collect(gateway.events(one.id), heard))
    await gateway.enqueue(waiting(one))
    for attempt, pool in enumerate((POOL, POOL, NEXT), 1):
        worker = backend.worker(pool)
        [taken] = await worker.take(1, wait_s=0)
        assert taken.attempt == attempt
        await worker.emit([(taken.request, Frame(one.id, attempt, -1, Started(pool)))])
        await until(lambda attempt=attempt: len(heard) == attempt)  # the next attempt here clears the log of this one
        assert await worker.hand_over([onward(taken, pool)]) == []
        assert (await gateway.standing(one.id)).state == "absent"
        assert await gateway.cancel(stopped(request())) == "absent"
        assert await gateway.latest(one.id) is None
        assert await backend.settler().missing(POOL, [one.id]) == {}
        await carry(backend, POOL, NEXT)
        assert (await gateway.standing(one.id)).state == "queued"
    worker = backend.worker()
    [taken] = await worker.take(1, wait_s=0)
    assert (taken.attempt, [step.pool for step in taken.request.steps]) == (4, [POOL, POOL, NEXT])
    assert await worker.finish([ended(taken)]) == []
    await asyncio.wait_for(listening, SOON_S)
    assert [at for at, _ in heard] == ["1-0", "2-0", "3-0", "4-0"]


async def test_what_loses_all_its_workers_goes_on_too(backend: Backend) -> None:
    """A request that was taken as often as its pool allows is no failure while a leg is left; a cancelled one is."""
    gateway, settler, worker = backend.gateway(), backend.settler(), backend.worker()
    poison, cancelled = request(legs=[NEXT]), request(legs=[NEXT])
    await gateway.enqueue(waiting(poison, cancelled))
    await worker.take(2, wait_s=0)
    assert await gateway.cancel(stopped(cancelled)) == "told"
    backend.expire(poison.id, cancelled.id)
    await settler.sweep(POOL, 1)
    assert await settler.missing(POOL, [poison.id]) == {}
    [move] = await carry(backend, POOL)
    assert (move.request.id, move.attempt, move.lost) == (poison.id, 1, True)
    assert [(step.pool, step.reason) for step in move.request.steps] == [(POOL, "worker_lost")]
    assert (await gateway.standing(poison.id)).pool == NEXT
    [taken] = await backend.worker(NEXT).take(9, wait_s=0)
    assert (taken.request.id, taken.attempt) == (poison.id, 2)


async def test_a_settler_that_dies_on_the_way_leaves_the_rest_to_another(backend: Backend) -> None:
    """What it has read is read again, and whoever reads it can tell how far it came."""
    one = request(legs=[NEXT])
    await handed_over(backend, one)
    [(_, entry)] = await backend.settler("dead", idle_ms=0).settlements([POOL], 9, wait_s=0)
    assert entry.move is not None
    assert not entry.again
    other = backend.settler("other", idle_ms=0)
    [(_, entry)] = await other.settlements([POOL], 9, wait_s=0)
    assert entry.again
    assert entry.move is not None
    assert await other.arrived(NEXT, {one.id: 1}) == set()
    await backend.gateway(NEXT).enqueue([Waiting(entry.move.request, attempt=1)])
    assert await other.arrived(NEXT, {one.id: 1}) == {one.id}
    worker = backend.worker(NEXT)
    [taken] = await worker.take(1, wait_s=0)
    assert await other.arrived(NEXT, {one.id: 1}) == {one.id}
    await worker.finish([ended(taken)])
    assert await other.arrived(NEXT, {one.id: 1}) == {one.id}
    assert await other.arrived(NEXT, {one.id: 2}) == set()


async def test_what_its_new_pool_has_lost_may_be_put_into_the_first_again(backend: Backend) -> None:
    """A part of Redis was emptied: the attempts count on from what is known."""
    gateway, settler, one = backend.gateway(), backend.settler(), request(legs=[NEXT])
    await handed_over(backend, one)
    await carry(backend, POOL)
    _empty(backend, NEXT)
    assert await settler.missing(POOL, [one.id]) == {one.id: 1}
    await gateway.enqueue([Waiting(one, attempt=1)])
    assert await gateway.standing(one.id) == Standing("queued")
    [taken] = await backend.worker().take(1, wait_s=0)
    assert taken.attempt == 2


async def test_nothing_is_kept_of_a_request_that_is_over(backend: Backend) -> None:
    """The word of it is dropped when it has ended, and at the latest a minute after its deadline."""
    gateway, settler = backend.gateway(), backend.settler()
    late = msgspec.structs.replace(request(legs=[NEXT]), deadline_ms=1)
    forgotten = request(legs=[NEXT])
    await handed_over(backend, late)
    await handed_over(backend, forgotten)
    assert await gateway.cancel(stopped(forgotten)) == "absent"
    await settler.forget(POOL, [forgotten.id])
    _pass_a_minute(backend)
    await settler.sweep(POOL, 3)
    assert _kept(backend) == (set(), set())


def _empty(backend: Backend, pool: str) -> None:
    if isinstance(backend, InRedis):
        backend.client.delete(*backend.client.keys(f"fg:{{{pool}}}:*"))
    elif isinstance(backend, InMemory):
        backend.state(pool).jobs.clear()


def _pass_a_minute(backend: Backend) -> None:
    """Let the time be over for which word is kept, of those requests whose deadline has passed."""
    if isinstance(backend, InRedis):
        moved = keys_of(POOL).moved
        for one, until_ms in backend.client.zrange(moved, 0, -1, withscores=True):  # type: ignore[misc]
            backend.client.zadd(moved, {one: until_ms - 60_000})
    elif isinstance(backend, InMemory):
        moved_in_memory = backend.state(POOL).moved
        moved_in_memory.update({one: (until_ms - 60_000, left) for one, (until_ms, left) in moved_in_memory.items()})


def _kept(backend: Backend) -> tuple[set[Any], set[Any]]:
    if isinstance(backend, InRedis):
        keys = keys_of(POOL)
        kept = {*backend.client.hkeys(keys.jobs), *backend.client.zrange(keys.moved, 0, -1)}  # type: ignore[misc]
        return kept, set(backend.client.hkeys(keys.cancels))  # type: ignore[arg-type]
    assert isinstance(backend, InMemory)
    state = backend.state(POOL)
    return {*state.jobs, *state.moved}, set(state.cancels)


async def _collect(events: Any, heard: list[tuple[str, Event]]) -> None:
    async for at, event in events:
        heard.append((at, event))
        if isinstance(event, Ended):
            return
