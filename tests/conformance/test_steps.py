"""Steps of workflows in the queue: their log alone tells their end, with what they made."""

import asyncio

import msgspec

from gateway.contract.events import Ended, Frame, Started
from gateway.contract.request import Request
from gateway.queues.port import GatewaySide, Taken
from tests.conformance.backends import POOL, SOON_S, Backend, ended, request, stopped, waiting

PARENT = "req_00000000000070008000000000000001"


def step(number: int = 1) -> Request:
    return msgspec.structs.replace(request(number, keep=True), price=0, parent=PARENT)


def end_of(taken: Taken) -> Ended:
    return msgspec.structs.replace(ended(taken), parent=taken.request.parent)


async def told(gateway: GatewaySide, request_id: str) -> Ended:
    """Wait for the end that the log tells."""
    async with asyncio.timeout(SOON_S):
        events = [event async for _, event in gateway.events(request_id)]
    assert isinstance(events[-1], Ended)
    assert await gateway.latest(request_id) == events[-1]
    return events[-1]


async def test_the_latest_event_of_a_request_is_known_without_waiting(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    one = step()
    await gateway.enqueue(waiting(one))
    assert await gateway.latest(one.id) is None
    [taken] = await worker.take(1, wait_s=0)
    await worker.emit([(one, Frame(one.id, 1, -1, Started("worker")))])
    assert await gateway.latest(one.id) == Started("worker")
    await worker.finish([end_of(taken)])
    assert await gateway.latest(one.id) == end_of(taken)


async def test_the_log_of_a_step_tells_what_it_made_and_the_settlements_do_not(backend: Backend) -> None:
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    await gateway.enqueue(waiting(step()))
    [taken] = await worker.take(1, wait_s=0)
    await worker.finish([end_of(taken)])
    assert (await told(gateway, taken.request.id)).output == ended(taken).output
    [(_, entry)] = await settler.settlements([POOL], 10, wait_s=0)
    assert [(end.id, end.output, end.parent) for end in entry.ended] == [(taken.request.id, None, PARENT)]


async def test_a_step_that_is_given_up_or_stopped_is_still_told_as_a_step(backend: Backend) -> None:
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    lost, left = step(), step(2)
    await gateway.enqueue(waiting(lost))
    await worker.take(1, wait_s=0)
    backend.expire(lost.id)
    assert (await settler.sweep(POOL, 1)).given_up == [lost.id]
    await gateway.enqueue(waiting(left))
    assert await gateway.cancel(msgspec.structs.replace(stopped(left), parent=PARENT)) == "removed"
    entries = await settler.settlements([POOL], 10, wait_s=0)
    assert {end.parent for _, entry in entries for end in entry.ended} == {PARENT}
    for one, reason in ((lost, "worker_lost"), (left, "cancelled_by_caller")):
        end = await told(gateway, one.id)
        assert (end.reason, end.parent) == (reason, PARENT)
