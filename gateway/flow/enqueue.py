"""Step 6: into the pool's queue; what one event-loop tick admits goes in one command."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from gateway.contract.request import Request
from gateway.contract.units import Units
from gateway.flow.admit import Admitted
from gateway.flow.call import WEIGHTS
from gateway.queues.port import GatewaySide, QueueUnavailable, Waiting
from gateway.routing.backlog import Backlog


class Enqueued(msgspec.Struct, frozen=True):
    """An admitted call on its way into its queue."""

    admitted: Admitted
    waiting: Waiting
    depth: asyncio.Future[int]
    """How many wait once it is in; QueueUnavailable when the queue did not answer."""


def enqueue(gateway: str, posts: "Posts", admitted: Admitted) -> Enqueued:
    """Hand the request over to the tick's command for its pool.

    What is lost on the way is put back by `resend` or `sweep`.
    """
    resolved = admitted.routed.quoted.resolved
    now_us = time.time_ns() // 1000
    request = Request(
        id=admitted.id,
        account=resolved.caller.account_id,
        model=resolved.model.name,
        task=resolved.task,
        input=admitted.input,
        price=resolved.price.id,
        reply="" if resolved.call.mode == "async" else gateway,
        stream=resolved.call.mode == "stream",
        keep=admitted.keep,
        enqueued_us=now_us,
        deadline_ms=now_us // 1000 + admitted.deadline_s * 1000,
        only=list(admitted.routed.only),
        legs=list(admitted.routed.legs),
    )
    cost = expected_work(admitted.routed.quoted.quote.units) / WEIGHTS[resolved.call.priority]
    waiting = Waiting(request, cost)
    return Enqueued(admitted, waiting, posts.post(admitted.routed.pool.name, waiting))


def expected_work(units: Units) -> float:
    """Measure a request for the fair queue: one, and one more for each 1,000 tokens or characters it may take."""
    return 1.0 + (units.input_tokens + units.output_tokens + units.characters) / 1000


class Posts:
    """Gathers what one tick puts into each pool's queue."""

    def __init__(self, queue: Callable[[str], GatewaySide], backlog: Backlog) -> None:
        self._queue = queue
        self._backlog = backlog
        self._gathered: dict[str, tuple[list[Waiting], asyncio.Future[int]]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def post(self, pool: str, waiting: Waiting) -> asyncio.Future[int]:
        """Add a request to this tick's command; the future is shared by all of them, so never cancel it."""
        gathered = self._gathered.get(pool)
        if gathered is None:
            loop = asyncio.get_running_loop()
            gathered = self._gathered[pool] = ([], loop.create_future())
            loop.call_soon(self._flush, pool)
        gathered[0].append(waiting)
        return gathered[1]

    def _flush(self, pool: str) -> None:
        items, depth = self._gathered.pop(pool)
        task = asyncio.get_running_loop().create_task(self._send(pool, items, depth))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, pool: str, items: list[Waiting], depth: asyncio.Future[int]) -> None:
        try:
            waiting = await self._queue(pool).enqueue(items)
        except QueueUnavailable as error:
            depth.set_exception(error)
            depth.exception()  # whoever waits sees it; where nobody does, `resend` and `sweep` mend it
            return
        self._backlog.enqueued(pool, waiting)
        depth.set_result(waiting)
