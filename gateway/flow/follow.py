"""Step 7: what a worker says of a request, joined with the settler's word that it is charged.

The two come from different processes, in any order. The final answer needs both.
"""

import asyncio
import time
from collections.abc import Iterator

import msgspec

from gateway.contract.events import AudioDelta, Delta, Ended, Frame, ImageDelta, Settled, TextDelta
from gateway.contract.states import Reason
from gateway.errors import EngineFailed, FaregateError
from gateway.flow.enqueue import Enqueued
from gateway.queues.order import Order

_DELTAS = (TextDelta, AudioDelta, ImageDelta)
MOST_UNREAD = 20_000
"""Deltas kept for a reader that does not read, before its request is stopped."""


class Finished(msgspec.Struct, frozen=True):
    """A request that has ended and is charged. `ended` is None where its end was not worth telling: it was swept."""

    enqueued: Enqueued
    settled: Settled
    ended: Ended | None


class Mailbox:
    """What has come for one waiting caller. Used by one event loop, read by one caller."""

    __slots__ = (
        "_done",
        "_order",
        "_wake",
        "began_s",
        "deltas",
        "ended",
        "enqueued",
        "failure",
        "id",
        "settled",
        "stop_reason",
        "streams",
    )

    def __init__(self, enqueued: Enqueued) -> None:
        self.id = enqueued.admitted.id
        self.enqueued = enqueued
        self.streams = enqueued.waiting.request.stream
        self.began_s = time.monotonic()
        self.deltas: list[Delta] = []
        self.ended: Ended | None = None
        self.settled: Settled | None = None
        self.failure: FaregateError | None = None
        self.stop_reason: Reason = "client_gone"
        self._order = Order()
        self._done = False
        self._wake: asyncio.Future[None] | None = None

    def deliver(self, frame: Frame) -> None:
        """Take one event, in any order but that of the deltas, which has to be theirs."""
        event = frame.event
        if isinstance(event, Settled):
            self.settled = event
        elif self.streams:
            self._follow(frame)
        elif isinstance(event, Ended) and frame.attempt >= self._order.attempt:
            self._order.attempt, self.ended = frame.attempt, event
        self._look()

    def _follow(self, frame: Frame) -> None:
        """Take one event of a stream. A gap, or a second attempt after the first was heard, breaks the answer off."""
        event = frame.event
        verdict = self._order.judge(frame.attempt, frame.seq, last=isinstance(event, Ended))
        if verdict == "gap":
            self.fail(_incomplete(self.id))
        elif verdict == "restarted":
            self.fail(
                EngineFailed("The worker was lost in the middle of the answer.", code="worker_lost", request_id=self.id)
            )
        elif verdict == "next" and isinstance(event, Ended):
            self.ended = event
        elif verdict == "next" and isinstance(event, _DELTAS):
            self.deltas.append(event)
            if len(self.deltas) > MOST_UNREAD:
                self.fail(
                    EngineFailed("The answer was not read fast enough.", code="reader_too_slow", request_id=self.id)
                )

    def _look(self) -> None:
        settled = self.settled
        if settled is not None and (self.ended is not None or settled.outcome != "succeeded"):
            self._done = True
        if self._done or self.deltas:
            self._rouse()

    def _rouse(self) -> None:
        wake = self._wake
        if wake is not None and not wake.done():
            wake.set_result(None)

    def fail(self, error: FaregateError, reason: Reason = "client_gone") -> None:
        """End the waiting with an error. The request is stopped for this reason, and accounted for all the same."""
        if not self._done:
            self.failure, self.stop_reason = error, reason
            self._done = True
        self._rouse()

    @property
    def done(self) -> bool:
        """Whether the end is known: `finished()` answers or raises without waiting."""
        return self._done

    async def more(self) -> list[Delta]:
        """Wait for deltas and take all there are; an empty list means the end."""
        while not self.deltas and not self._done:
            await self._sleep()
        deltas, self.deltas = self.deltas, []
        return deltas

    async def finished(self) -> Finished:
        """Wait for the end. Raises the error that broke the waiting off."""
        while not self._done:
            await self._sleep()
        if self.failure is not None:
            raise self.failure
        assert self.settled is not None
        return Finished(self.enqueued, self.settled, self.ended)

    async def _sleep(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None


class Mailboxes:
    """The mailboxes of all callers that wait at this gateway, by request id."""

    def __init__(self) -> None:
        self._open: dict[str, Mailbox] = {}

    def open(self, enqueued: Enqueued) -> Mailbox:
        """Open a mailbox; close it when the caller has gone or has been answered."""
        box = self._open[enqueued.admitted.id] = Mailbox(enqueued)
        return box

    def close(self, box: Mailbox) -> None:
        """Forget a mailbox; what comes for it later is dropped."""
        self._open.pop(box.id, None)

    def deliver(self, frame: Frame) -> None:
        """Hand a frame to its mailbox, if that is still open."""
        box = self._open.get(frame.id)
        if box is not None:
            box.deliver(frame)

    def gap(self) -> None:
        """Break off the streams: some of their deltas may be lost. Whole answers are looked for."""
        for box in self:
            if box.streams and not box.done:
                box.fail(_incomplete(box.id))

    def __iter__(self) -> Iterator[Mailbox]:
        """Go over the open ones as they are now."""
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        """Count the open ones."""
        return len(self._open)


def _incomplete(request_id: str) -> EngineFailed:
    return EngineFailed("A part of the answer was lost on the way.", code="answer_incomplete", request_id=request_id)
