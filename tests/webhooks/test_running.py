"""What is told of a request that runs: that it has started, and how far it is, seldom enough."""

from uuid import UUID

import msgspec

from gateway.contract.events import Frame, Progress
from gateway.contract.request import Request
from gateway.queues.port import Waiting
from gateway.webhooks.events import EventKey
from gateway.webhooks.running import Running
from tests.webhooks.office import Office
from tests.webhooks.receiver import Receiver

EVERYTHING = ("started", "progress", "completed")


async def kinds(office: Office) -> list[tuple[int, int]]:
    rows = await office.till.db.fetch("select kind, number from webhook_event order by kind, number")
    return [tuple(row) for row in rows]


async def test_start_and_progress_are_noted_once_and_progress_seldom(office: Office) -> None:
    """By any number of settlers."""
    one, other = (Running(office.outbox, office.queues.pool) for _ in range(2))
    async with Receiver() as receiver:
        request_id = await office.admit(receiver.url, EVERYTHING)
    request = Request(request_id, 1, "painter", "text-to-image", b"", 1, keep=True)
    queue, worker = office.queues.pool("fake"), office.queues.worker("fake")
    await queue.enqueue([Waiting(request)])
    await one.look()
    assert await kinds(office) == []
    [taken] = await worker.take(1, wait_s=0)
    for fraction in (0.05, 0.31, 0.33):
        frame = Frame(request_id, taken.attempt, -1, Progress(fraction))
        await worker.emit([(msgspec.structs.replace(request, keep=True), frame)])
        await one.look()
        await other.look()
    assert await kinds(office) == [(0, 0), (1, 31)]


async def test_nothing_is_noted_of_a_request_that_has_ended(office: Office) -> None:
    request_id = await office.admit("https://receiver.example/", EVERYTHING)
    [wanted] = await office.outbox.running(UUID(int=0), limit=10)
    await office.settle(request_id)
    assert await office.outbox.running(UUID(int=0), limit=10) == []
    await office.outbox.note(EventKey(wanted.request, "progress", 50), every_s=5.0, every_percent=10)
    assert await kinds(office) == [(0, 0), (2, 0)]
