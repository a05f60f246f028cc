"""Stopping a request before, while and after it runs."""

import asyncio

from gateway.contract.events import Ended
from gateway.queues.keys import keys_of
from gateway.queues.port import Cancel
from tests.conformance.backends import POOL, SOON_S, Backend, ended, request, status, stopped, until, waiting


async def test_a_waiting_request_is_removed_and_its_end_settled(backend: Backend) -> None:
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    one, other = request(), request()
    await gateway.enqueue(waiting(one, other))
    assert await gateway.cancel(stopped(one)) == "removed"
    assert [taken.request.id for taken in await worker.take(9, wait_s=0)] == [other.id]
    [(_, entry)] = await settler.settlements([POOL], 10, wait_s=0)
    assert [(end.id, end.outcome) for end in entry.ended] == [(one.id, "cancelled")]
    assert await gateway.cancel(stopped(one)) == "absent"


async def test_the_end_of_a_request_that_is_in_no_queue_is_settled(backend: Backend) -> None:
    gateway, settler = backend.gateway(), backend.settler()
    one = request()
    await gateway.end(stopped(one))
    [(_, entry)] = await settler.settlements([POOL], 10, wait_s=0)
    assert [(end.id, end.outcome, end.price) for end in entry.ended] == [(one.id, "cancelled", one.price)]


async def test_the_worker_of_a_running_request_is_told_at_once(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(), request()))
    taken = await worker.take(9, wait_s=0)
    told = worker.cancels()
    listening = asyncio.ensure_future(anext(told))
    await until(lambda: backend.listeners(keys_of(POOL).control) == 1)
    assert await gateway.cancel(stopped(taken[1].request)) == "told"
    assert await asyncio.wait_for(listening, SOON_S) == Cancel(taken[1].request.id, "cancelled_by_caller")
    await told.aclose()  # type: ignore[attr-defined]


async def test_a_heartbeat_repeats_what_is_to_stop(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(), request()))
    one, other = await worker.take(9, wait_s=0)
    await gateway.cancel(stopped(one.request))
    ids = [one.request.id, other.request.id]
    for _ in range(2):
        assert (await worker.beat(ids, status())).cancelled == [Cancel(one.request.id, "cancelled_by_caller")]
    await worker.finish([ended(one)])
    assert (await worker.beat([other.request.id], status())).cancelled == []


async def test_a_request_to_stop_whose_worker_died_is_not_run_again(backend: Backend) -> None:
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    one = request()
    await gateway.enqueue(waiting(one))
    await worker.take(1, wait_s=0)
    await gateway.cancel(stopped(one))
    backend.expire(one.id)
    assert (await settler.sweep(POOL, 3)).given_up == [one.id]
    assert await worker.take(1, wait_s=0) == []
    [(_, entry)] = await settler.settlements([POOL], 10, wait_s=0)
    assert [(end.id, end.outcome, end.reason) for end in entry.ended] == [(one.id, "cancelled", "cancelled_by_caller")]


async def test_cancelling_while_taking_ends_each_request_exactly_once(backend: Backend) -> None:
    """200 requests, stopped while a worker takes and finishes them: each is settled once."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    requests = [request(account) for account in range(200)]
    await gateway.enqueue(waiting(*requests))

    async def work() -> None:
        while taken := await worker.take(7, wait_s=0):
            assert await worker.finish([ended(one) for one in taken]) == []

    _, *answers = await asyncio.gather(work(), *(gateway.cancel(stopped(one)) for one in requests))
    assert set(answers) <= {"removed", "told", "absent"}
    ends: list[Ended] = []
    while entries := await settler.settlements([POOL], 1000, wait_s=0):
        ends += [end for _, entry in entries for end in entry.ended]
    assert sorted(end.id for end in ends) == sorted(one.id for one in requests)
    assert sum(end.outcome == "cancelled" for end in ends) == answers.count("removed")
