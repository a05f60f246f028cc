"""Every end is settled, whichever settler dies; the sweeper finds what is lost and nothing else."""

import asyncio
import time

from gateway.contract.pools import PoolSpec, ServedModel
from tests.conformance.backends import POOL, SOON_S, Backend, ended, request, waiting


async def test_each_entry_is_read_by_one_settler_and_removed_when_settled(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    first, second = backend.settler("first"), backend.settler("second")
    await first.settlements([POOL], 10, wait_s=0)
    await gateway.enqueue(waiting(*(request() for _ in range(6))))
    for taken in await worker.take(6, wait_s=0):
        await worker.finish([ended(taken)])
    mine = await first.settlements([POOL], 3, wait_s=0)
    yours = await second.settlements([POOL], 10, wait_s=0)
    assert len(mine) == len(yours) == 3
    assert {entry.entry for _, entry in mine}.isdisjoint(entry.entry for _, entry in yours)
    assert (await gateway.depth()).settling == 6
    await first.settled([(pool, entry.entry) for pool, entry in mine + yours])
    assert (await gateway.depth()).settling == 0


async def test_what_a_dead_settler_read_is_read_by_another(backend: Backend) -> None:
    """On a timer, and while new entries keep coming."""
    gateway, worker = backend.gateway(), backend.worker()
    dead, alive = backend.settler("dead"), backend.settler("alive", idle_ms=300)
    await gateway.enqueue(waiting(*(request() for _ in range(200))))
    [taken] = await worker.take(1, wait_s=0)
    await worker.finish([ended(taken)])
    assert len(await dead.settlements([POOL], 10, wait_s=0)) == 1
    seen: list[str] = []
    for _ in range(60):
        [busy] = await worker.take(1, wait_s=0)
        await worker.finish([ended(busy)])
        entries = await alive.settlements([POOL], 10, wait_s=0)
        seen += [end.id for _, entry in entries for end in entry.ended]
        await alive.settled([(pool, entry.entry) for pool, entry in entries])
        await asyncio.sleep(0.03)
    assert seen.count(taken.request.id) == 1
    assert len(seen) == 61


async def test_settlers_wait_for_all_pools_at_once(backend: Backend) -> None:
    gateway, worker, settler = backend.gateway("b"), backend.worker("b"), backend.settler()
    reading = asyncio.ensure_future(settler.settlements(["a", "b", "c"], 10, wait_s=120))
    await asyncio.sleep(0.1)
    await gateway.enqueue(waiting(request()))
    [taken] = await worker.take(1, wait_s=0)
    await worker.finish([ended(taken)])
    [(pool, entry)] = await asyncio.wait_for(reading, SOON_S)
    assert (pool, entry.ended[0].id) == ("b", taken.request.id)
    assert await settler.settlements([], 10, wait_s=0.01) == []


async def test_only_what_is_nowhere_counts_as_missing(backend: Backend) -> None:
    """Neither what waits, nor what runs, nor what has ended and is not settled yet."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    gone, poison = request(), request()
    requests = [request(account) for account in range(4)]
    await gateway.enqueue(waiting(poison))
    await worker.take(1, wait_s=0)
    backend.expire(poison.id)
    await settler.sweep(POOL, 1)
    await gateway.enqueue(waiting(*requests))
    taken = await worker.take(3, wait_s=0)
    await worker.finish([ended(one) for one in taken[:2]])
    ids = [one.id for one in [gone, poison, *requests]]
    assert await settler.missing(POOL, ids) == {gone.id: 0}
    entries = await settler.settlements([POOL], 10, wait_s=0)
    assert await settler.missing(POOL, ids) == {gone.id: 0}
    await settler.settled([(pool, entry.entry) for pool, entry in entries])
    assert set(await settler.missing(POOL, ids) or ()) == {gone.id, poison.id} | {one.request.id for one in taken[:2]}


async def test_workers_learn_what_their_pool_serves(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    assert await worker.spec() is None
    spec = PoolSpec(pool=POOL, engine="fake", models=[ServedModel(name="m", tasks=["chat"])], lease_ms=3000)
    await gateway.publish_spec(spec)
    assert await worker.spec() == spec


async def test_the_lease_of_the_pool_is_used(backend: Backend) -> None:
    """Neither shorter nor longer, as the sweep finds it, which runs all the while."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    await gateway.publish_spec(PoolSpec(pool=POOL, engine="fake", models=[], lease_ms=200))
    await worker.spec()
    await gateway.enqueue(waiting(request()))
    began_s = time.monotonic()
    await worker.take(1, wait_s=0)
    async with asyncio.timeout(SOON_S):
        while not (await settler.sweep(POOL, 3)).returned:
            await asyncio.sleep(0.01)
    assert time.monotonic() - began_s > 0.19


async def test_gateways_that_gave_a_sign_of_life_are_named(backend: Backend) -> None:
    gateway, settler = backend.gateway(), backend.settler()
    await gateway.alive("one")
    await asyncio.sleep(0.3)
    between_s = time.monotonic() - 0.15
    await gateway.alive("two")
    assert await settler.gateways(900) == {"one", "two"}
    async with asyncio.timeout(SOON_S):
        while not (named := await settler.gateways(time.monotonic() - between_s)):
            await asyncio.sleep(0.01)  # the machine slept over the question: now both were silent for so long
    assert named == {"two"}
