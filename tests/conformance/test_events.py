"""Replies in order, and the event log of kept requests."""

import asyncio

import pytest

from gateway.contract.events import Ended, Event, Frame, Settled, TextDelta
from gateway.contract.phases import Phases
from gateway.contract.request import Request
from gateway.contract.units import Units
from gateway.queues.order import Order
from gateway.queues.port import EventsLost, GatewaySide
from tests.conformance.backends import POOL, SOON_S, Backend, ended, request, stopped, until, waiting


def deltas(one: Request, attempt: int, *seqs: int) -> list[tuple[Request, Frame]]:
    """Make the frames of deltas whose text is their number."""
    return [(one, Frame(one.id, attempt, seq, TextDelta(str(seq)))) for seq in seqs]


async def read(gateway: GatewaySide, request_id: str, after: str = "") -> list[tuple[str, Event]]:
    """Read the log to its end."""
    async with asyncio.timeout(SOON_S):
        return [item async for item in gateway.events(request_id, after)]


def texts(events: list[tuple[str, Event]]) -> list[str]:
    """Take the texts of the deltas."""
    return [event.text for _, event in events if isinstance(event, TextDelta)]


async def test_a_gateway_hears_its_own_requests_in_order(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    mine: list[Frame] = []
    yours: list[Frame] = []
    await backend.listen("mine", mine.append)
    await backend.listen("yours", yours.append)
    await gateway.enqueue(waiting(request(reply="mine", stream=True), request(2, reply="yours", stream=True)))
    taken = await worker.take(2, wait_s=0)
    for seq in range(5):
        await worker.emit([pair for one in taken for pair in deltas(one.request, 1, seq)])
    await worker.finish([ended(one) for one in taken])
    await until(lambda: len(mine) >= 6 and len(yours) >= 6)
    assert len(mine) == len(yours) == 6
    assert {frame.id for frame in mine}.isdisjoint(frame.id for frame in yours)
    order = Order()
    verdicts = [order.judge(frame.attempt, frame.seq, last=isinstance(frame.event, Ended)) for frame in mine]
    assert verdicts == ["next"] * 6
    assert isinstance(mine[-1].event, Ended)
    assert mine[-1].event.output == ended(taken[0]).output


async def test_a_lost_delta_shows_even_when_only_the_end_comes_after_it(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    heard: list[Frame] = []
    await backend.listen("gateway", heard.append)
    await gateway.enqueue(waiting(request(reply="gateway", stream=True)))
    [taken] = await worker.take(1, wait_s=0)
    await worker.emit(deltas(taken.request, 1, 0, 1, 2))
    await worker.finish([ended(taken)])
    await until(lambda: len(heard) == 4)
    order = Order()
    del heard[2]  # lost on the way
    verdicts = [order.judge(frame.attempt, frame.seq, last=isinstance(frame.event, Ended)) for frame in heard]
    assert verdicts == ["next", "next", "gap"]


async def test_a_settlement_is_announced_to_the_gateway_that_waits(backend: Backend) -> None:
    heard: list[Frame] = []
    await backend.listen("gateway", heard.append)
    settled = Settled("req_x", "succeeded", "done", 5, 9, Units(), Phases(), 1)
    await backend.settler().announce(
        [("gateway", Frame("req_x", 1, -1, settled)), ("nobody", Frame("y", 1, -1, settled))]
    )
    await until(lambda: bool(heard))
    assert [frame.event for frame in heard] == [settled]


async def test_only_kept_outputs_reach_the_settlements(backend: Backend) -> None:
    """A synchronous answer goes to the gateway that waits, and not through the stream."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    heard: list[Frame] = []
    await backend.listen("gateway", heard.append)
    await gateway.enqueue(waiting(request(reply="gateway"), request(2, keep=True)))
    taken = await worker.take(2, wait_s=0)
    await worker.finish([ended(one) for one in taken])
    entries = await settler.settlements([POOL], 10, wait_s=0)
    outputs = {end.id: end.output for _, entry in entries for end in entry.ended}
    for one in taken:
        assert (outputs[one.request.id] is not None) == one.request.keep
    await until(lambda: bool(heard))
    assert isinstance(heard[0].event, Ended)
    assert heard[0].event.output is not None


async def test_a_kept_request_can_be_read_again_from_any_event(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(keep=True)))
    [taken] = await worker.take(1, wait_s=0)
    await worker.emit(deltas(taken.request, 1, 0, 1, 2))
    await worker.emit(deltas(taken.request, 1, 3, 4))
    await worker.finish([ended(taken)])
    whole = await read(gateway, taken.request.id)
    assert texts(whole) == ["0", "1", "2", "3", "4"]
    assert isinstance(whole[-1][1], Ended)
    for at, (entry, _) in enumerate(whole):
        assert await read(gateway, taken.request.id, entry) == whole[at + 1 :]


async def test_a_reader_sees_events_as_they_come(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(keep=True)))
    [taken] = await worker.take(1, wait_s=0)
    seen: list[Event] = []

    async def watch() -> None:
        async for _, event in gateway.events(taken.request.id):
            seen.append(event)

    readers = [asyncio.ensure_future(watch()) for _ in range(2)]
    await asyncio.sleep(0.1)
    for seq in range(3):
        await worker.emit(deltas(taken.request, 1, seq))
        await until(lambda seq=seq: len(seen) == 2 * (seq + 1))
    await worker.finish([ended(taken)])
    await asyncio.wait_for(asyncio.gather(*readers), SOON_S)
    assert len(seen) == 8


async def test_the_log_of_a_new_attempt_holds_nothing_of_the_lost_one(backend: Backend) -> None:
    """A reader who was in the middle sees the attempt change in the entry's id."""
    gateway, lost, worker = backend.gateway(), backend.worker(), backend.worker()
    one = request(keep=True)
    await gateway.enqueue(waiting(one))
    await lost.take(1, wait_s=0)
    await lost.emit(deltas(one, 1, 0, 1))
    live = gateway.events(one.id)
    assert [(await anext(live))[0] for _ in range(2)] == ["1-0", "1-1"]
    backend.expire(one.id)
    await backend.settler().sweep(POOL, 3)
    [taken] = await worker.take(1, wait_s=0)
    await worker.emit(deltas(one, 2, 0))
    await lost.emit(deltas(one, 1, 2))
    await worker.finish([ended(taken)])
    rest = [item async for item in live]
    assert [entry for entry, _ in rest] == ["2-0", "2-1"]
    assert await read(gateway, one.id) == rest
    assert await read(gateway, one.id, "1-0") == rest


async def test_missing_events_are_an_error_and_not_a_shorter_answer(backend: Backend) -> None:
    gateway, worker = backend.gateway(), backend.worker()
    await gateway.enqueue(waiting(request(keep=True), request(2, keep=True)))
    gap, short = await worker.take(2, wait_s=0)
    await worker.emit(deltas(gap.request, 1, 0, 2))
    await worker.emit(deltas(short.request, 1, 0))
    await worker.finish([ended(short)])
    with pytest.raises(EventsLost):
        await read(gateway, gap.request.id)
    with pytest.raises(EventsLost):
        await read(gateway, short.request.id, "1-7")
    with pytest.raises(EventsLost):
        await read(gateway, "req_unknown", "1-0")
    with pytest.raises(EventsLost):
        await read(gateway, short.request.id, "anything")


async def test_every_kept_request_has_its_end_in_the_log(backend: Backend) -> None:
    """Also the one that was cancelled while it waited, and the one that no worker ended."""
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    cancelled, poison = request(keep=True), request(keep=True)
    await gateway.enqueue(waiting(cancelled))
    assert await gateway.cancel(stopped(cancelled)) == "removed"
    [(_, last)] = await read(gateway, cancelled.id)
    assert isinstance(last, Ended)
    assert last.outcome == "cancelled"
    await gateway.enqueue(waiting(poison))
    await worker.take(1, wait_s=0)
    await worker.emit(deltas(poison, 1, 0))
    backend.expire(poison.id)
    await settler.sweep(POOL, 1)
    await settler.settlements([POOL], 10, wait_s=0)
    _, (_, last) = await read(gateway, poison.id)
    assert isinstance(last, Ended)
    assert last.reason == "worker_lost"
