"""One step at a model: a request in its pool's queue, followed by its event log to its end."""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncGenerator, Callable
from typing import cast

import msgspec
import structlog

from gateway.contract.events import Ended, Event
from gateway.contract.phases import Phases
from gateway.contract.request import Request
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.queues.port import EventsLost, GatewaySide, QueueUnavailable, Waiting
from workers.engine import EngineError
from workers.engines.workflow.options import Node
from workers.waiting import Backoff

log = structlog.get_logger()

Heard = Callable[[Event], None]

LOOK_S = 3.0
"""How long nothing may be heard of a step before its queue is asked whether it still has it."""
MOST_LOSSES = 3
"""How often a step is put back that Redis has lost."""
STOP_TRIES = 5


def step_id(parent: Request, attempt: int, node: Node, packed: bytes) -> str:
    """Make the id of a step's request: the same for the same step of the same attempt, with its workflow's time."""
    seed = f"{parent.id} {attempt} {node.name} {node.step.model} {node.step.task} ".encode()
    digest = hashlib.sha256(seed + packed).hexdigest()
    return f"req_{parent.id[4:16]}7{digest[:3]}8{digest[3:18]}"


def pool_of(node: Node, request_id: str) -> str:
    """Choose the pool of a step's request by weight and by its id, so that every attempt looks for it in the same."""
    point = int(request_id[-8:], 16) % sum(node.step.pools.values())
    for pool, weight in sorted(node.step.pools.items()):
        point -= weight
        if point < 0:
            return pool
    raise ValueError("a pool's weight is below zero")


class Ask:
    """The request of one step."""

    def __init__(self, queue: Callable[[str], GatewaySide], parent: Request, node: Node, number: int, packed: bytes):
        assert node.step.task is not None
        self.id = step_id(parent, number, node, packed)
        self.pool = pool_of(node, self.id)
        self._queue = queue(self.pool)
        self._request = Request(
            self.id,
            parent.account,
            node.step.model,
            node.step.task,
            packed,
            price=0,
            keep=True,
            deadline_ms=parent.deadline_ms,
            parent=parent.id,
        )

    async def found(self) -> Ended | bool:
        """Look for it: its end, or whether it waits or runs. Redis is waited for."""
        backoff = Backoff("workflow.look_retry")
        while True:
            try:
                return await self._look()
            except QueueUnavailable as error:
                failure = error
            await backoff.pause(failure)

    async def follow(self, heard: Heard) -> Ended:
        """Wait for its end, and tell what is heard of it meanwhile; Redis is waited for.

        What is neither queued nor leased is put into the queue, a few times at most: then this raises EngineError.
        """
        backoff = Backoff("workflow.follow_retry")
        losses = 0
        while True:
            try:
                found = await self._look()
                if isinstance(found, Ended):
                    return found
                if not found:
                    request = msgspec.structs.replace(self._request, enqueued_us=time.time_ns() // 1000)
                    await self._queue.enqueue([Waiting(request)])
                return await self._listen(heard)
            except QueueUnavailable as error:
                failure: Exception = error
            except EventsLost as error:
                losses += 1
                failure = error
            if losses > MOST_LOSSES:
                raise EngineError("its queue keeps losing it.")
            await backoff.pause(failure)

    async def _look(self) -> Ended | bool:
        latest = await self._queue.latest(self.id)
        if isinstance(latest, Ended):
            return latest
        return (await self._queue.standing(self.id)).state != "absent"

    async def _listen(self, heard: Heard) -> Ended:
        """Read its events to the end. Raises EventsLost where it is neither queued nor leased, and has not ended."""
        reading = asyncio.create_task(self._read(heard))
        absent = False
        try:
            while not (await asyncio.wait({reading}, timeout=LOOK_S))[0]:
                found = await self._look()
                if isinstance(found, Ended):
                    return found
                if not found and absent:
                    raise EventsLost("neither queued nor leased")
                absent = not found
            return reading.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self, heard: Heard) -> Ended:
        stream = cast("AsyncGenerator[tuple[str, Event]]", self._queue.events(self.id))
        async with contextlib.aclosing(stream) as events:
            async for _, event in events:
                heard(event)
                if isinstance(event, Ended):
                    return event
        raise EventsLost("the log stopped before the end")

    async def stop(self, reason: Reason) -> Ended | None:
        """Stop it, and answer its end; None where it was not there, or Redis is away."""
        outcome: Outcome = "expired" if reason == "deadline" else "cancelled"
        end = Ended(self.id, 0, outcome, reason, Units(), Phases(), 0, parent=self._request.parent)
        backoff = Backoff("workflow.stop_retry")
        for _ in range(STOP_TRIES):
            try:
                if await self._queue.cancel(end) == "absent":
                    latest = await self._queue.latest(self.id)
                    return latest if isinstance(latest, Ended) else None
                return await self._listen(lambda _: None)
            except QueueUnavailable as error:
                await backoff.pause(error)
            except EventsLost:
                return None
        log.warning("workflow.not_stopped", request_id=self.id, pool=self.pool)
        return None
