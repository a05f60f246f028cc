"""Takers sleep until there is work, and none sleeps while there is."""

import asyncio
import time

from tests.conformance.backends import SOON_S, Backend, ended, request, waiting


async def test_a_sleeping_taker_is_woken_within_milliseconds(backend: Backend) -> None:
    """At its best of three: the rest is the machine's."""
    gateway, worker = backend.gateway(), backend.worker()
    took_s = []
    for _ in range(3):
        taking = asyncio.ensure_future(worker.take(1, wait_s=60))
        await asyncio.sleep(0.1)
        began_s = time.monotonic()
        one = request()
        await gateway.enqueue(waiting(one))
        [taken] = await taking
        assert taken.request.id == one.id
        took_s.append(time.monotonic() - began_s)
    assert min(took_s) < 0.5


async def test_taking_nothing_takes_as_long_as_asked(backend: Backend) -> None:
    worker = backend.worker()
    took_s = []
    for _ in range(3):
        began_s = time.monotonic()
        assert await worker.take(1, wait_s=0.2) == []
        took_s.append(time.monotonic() - began_s)
    assert 0.19 < min(took_s) < 1.0


async def test_10000_requests_and_4_takers_lose_no_wake_up(backend: Backend) -> None:
    """Each taker sleeps for minutes when it is not woken, so one lost wake-up would run into the time-out."""
    gateway = backend.gateway()
    seen: set[str] = set()
    all_seen = asyncio.Event()

    async def serve() -> None:
        worker = backend.worker()
        while True:
            taken = await worker.take(16, wait_s=300)
            seen.update(one.request.id for one in taken)
            if len(seen) == 10_000:
                all_seen.set()
            await worker.finish([ended(one) for one in taken])

    takers = [asyncio.ensure_future(serve()) for _ in range(4)]
    requests = [request(number % 7) for number in range(10_000)]
    try:
        async with asyncio.timeout(200):
            for start in range(0, 10_000, 50):
                await gateway.enqueue(waiting(*requests[start : start + 50]))
                if start % 1000 == 0:
                    await asyncio.sleep(0.01)  # let the takers run dry and sleep
            await all_seen.wait()
    finally:
        for taker in takers:
            taker.cancel()
        await asyncio.gather(*takers, return_exceptions=True)
    assert seen == {one.id for one in requests}


async def test_a_cancelled_taker_leaves_its_wake_up_to_the_others(backend: Backend) -> None:
    gateway, leaver, stayer = backend.gateway(), backend.worker(), backend.worker()
    leaving = asyncio.ensure_future(leaver.take(1, wait_s=60))
    await asyncio.sleep(0.1)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    staying = asyncio.ensure_future(stayer.take(1, wait_s=60))
    await asyncio.sleep(0.1)
    await gateway.enqueue(waiting(request()))
    assert len(await asyncio.wait_for(staying, SOON_S)) == 1


async def test_a_taker_cancelled_in_the_act_keeps_nothing(backend: Backend) -> None:
    """Whatever moment the cancellation hits, every request can be taken by another."""
    gateway, leaver, stayer = backend.gateway(), backend.worker(), backend.worker()
    requests = [request() for _ in range(20)]
    await gateway.enqueue(waiting(*requests))
    for pause_s in (0, 0.0002, 0.0005, 0.001, 0.002):
        leaving = asyncio.ensure_future(leaver.take(2, wait_s=1))
        await asyncio.sleep(pause_s)
        leaving.cancel()
        [result] = await asyncio.gather(leaving, return_exceptions=True)
        if isinstance(result, list):
            await leaver.give_back([taken.request.id for taken in result])
    taken: list[str] = []
    async with asyncio.timeout(SOON_S):
        while len(taken) < len(requests):  # what the leaver got is given back in a while
            taken += [one.request.id for one in await stayer.take(100, wait_s=1)]
    assert sorted(taken) == sorted(one.id for one in requests)
