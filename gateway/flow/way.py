"""The whole way of a request through one gateway process."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.errors import FaregateError, Unavailable
from gateway.flow.admit import admit
from gateway.flow.authenticate import Authentic, authenticate
from gateway.flow.call import Call
from gateway.flow.choose import choose
from gateway.flow.enqueue import Enqueued, Posts, enqueue
from gateway.flow.follow import Mailbox, Mailboxes
from gateway.flow.offers import Offers, redeem
from gateway.flow.quote import Quoted, quote
from gateway.flow.reach import reach
from gateway.flow.resolve import resolve
from gateway.flow.respond import Answer, respond
from gateway.flow.route import route
from gateway.flow.stage import stage
from gateway.flow.wish import AUTO
from gateway.ledger.admission import Admission, Opening, Replay
from gateway.ledger.keyring import Keyring
from gateway.media.inlet import Inlet, Intake
from gateway.media.sources import Sources
from gateway.queues.port import GatewaySide, QueueUnavailable
from gateway.routing.backlog import Backlog
from gateway.routing.choice import Routes


class Placed(msgspec.Struct, frozen=True):
    """A request on its way, with the mailbox of the caller who waits for it."""

    enqueued: Enqueued
    box: Mailbox | None

    @property
    def id(self) -> str:
        """The request id."""
        return self.enqueued.admitted.id


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps work with."""

    name: str
    """Of this gateway process."""
    snapshot: Callable[[], Snapshot]
    keyring: Keyring
    inlet: Inlet
    sources: Sources
    routes: Routes
    backlog: Backlog
    offers: Offers
    admission: Admission
    queue: Callable[[str], GatewaySide]


class Way:
    """Walks calls through the steps. One a gateway process; holds no state but the open mailboxes."""

    def __init__(self, means: Means) -> None:
        self.name = means.name
        self.snapshot = means.snapshot
        self.keyring = means.keyring
        self.mailboxes = Mailboxes()
        self.backlog = means.backlog
        self.queue = means.queue
        self.routes = means.routes
        self.estimates = means.routes.estimates
        self._offers = means.offers
        self._inlet = means.inlet
        self._sources = means.sources
        self._admission = means.admission
        self._stopping: set[asyncio.Task[None]] = set()
        self._posts = Posts(means.queue, means.backlog)

    async def submit(self, call: Call) -> Placed | Replay:
        """Take a call through all steps up to its queue. Raises the FaregateError of the step that refused it.

        What was taken in for a call that is refused, or that repeats another, is removed; not so where it is unknown
        whether the request was opened.
        """
        intake = call.intake or self._inlet.open()
        try:
            placed = await self._submit(call, intake)
        except FaregateError as error:
            if intake.taken and not isinstance(error, Unavailable):
                await intake.discard()
            raise
        if intake.taken and isinstance(placed, Replay):
            await intake.discard()
        return placed

    async def _submit(self, call: Call, intake: Intake) -> Placed | Replay:
        authentic = await authenticate(self.keyring, call)
        quoted = await self._quoted(authentic, intake)
        routed = route(self.routes, self.backlog, quoted)
        if call.deadline_s is not None:
            await reach(self.estimates, self.queue(routed.pool.name), routed)
        admitted = await admit(self._admission, self.name, routed)
        if isinstance(admitted, Replay):
            return admitted
        placed = enqueue(self.name, self._posts, admitted)
        return Placed(placed, None if call.mode == "async" else self.mailboxes.open(placed))

    async def _quoted(self, authentic: Authentic, intake: Intake) -> Quoted:
        """Resolve and quote a call, at the price of its quote where it has one."""
        call, snapshot = authentic.call, self.snapshot()
        if call.wish is not None or call.model == AUTO:
            return await choose(snapshot, self.routes, self.backlog, authentic, partial(stage, self._sources, intake))
        staged = await stage(self._sources, intake, resolve(snapshot, authentic))
        return redeem(self._offers, snapshot, staged) if call.quote else quote(snapshot, staged, self.routes.serves)

    async def quote(self, call: Call) -> tuple[Quoted, str, int]:
        """Quote a call and hold nothing. Answers the id under which that price is kept, and its end in Unix seconds."""
        intake = call.intake or self._inlet.open()
        try:
            authentic = await authenticate(self.keyring, call)
            quoted = quote(self.snapshot(), await stage(self._sources, intake, resolve(self.snapshot(), authentic)))
            return quoted, *self._offers.make(quoted.resolved, quoted.quote.nanos)
        finally:
            if intake.taken:
                await intake.discard()

    async def answer(self, placed: Placed) -> Answer:
        """Wait for the end of a placed request. Raises the error that it ended with, or that broke the waiting off."""
        box = placed.box
        assert box is not None
        try:
            return respond(await box.finished(), self.age_us(placed))
        finally:
            self.close(placed)

    def close(self, placed: Placed) -> None:
        """Forget the mailbox of a caller who has been answered; stop the request of one whose waiting broke off."""
        box = placed.box
        if box is not None:
            self.mailboxes.close(box)
            self._hear(box)
            if box.failure is not None and box.settled is None:
                self._leave(placed.enqueued, box.stop_reason)

    def _hear(self, box: Mailbox) -> None:
        """Note how the pools served a request: what the choice among several goes by."""
        routed, ended = box.enqueued.admitted.routed, box.ended
        self.backlog.ended(routed.pool.name)
        if ended is not None:
            health = self.routes.health
            for step in ended.steps:
                if not step.name:
                    health.ended(step.model, step.pool, step.reason)
            health.ended(routed.model_at(ended.price), ended.pool or routed.pool.name, ended.reason)

    def abandon(self, opening: Opening) -> None:
        """End a request whose caller was gone before it was admitted: it is in no queue, and no worker will have it."""
        ended = unserved(opening.id, opening.price_version_id, "client_gone")
        self._beside(self._end(opening.pool, ended))

    async def close_down(self) -> None:
        """Wait until what is being stopped has been told so."""
        if self._stopping:
            await asyncio.wait(self._stopping)

    def _leave(self, enqueued: Enqueued, reason: Reason) -> None:
        """Stop a request that nobody waits for any more.

        Its worker is told, and its account is settled all the same.
        """
        self._beside(self._stop(enqueued, reason))

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _end(self, pool: str, ended: Ended) -> None:
        try:
            await self.queue(pool).end(ended)
        except QueueUnavailable:
            return  # the sweeper ends it: at its deadline, or when its gateway has let it lie

    async def _stop(self, enqueued: Enqueued, reason: Reason) -> None:
        request = enqueued.waiting.request
        try:
            await self.queue(enqueued.admitted.routed.pool.name).cancel(unserved(request.id, request.price, reason))
        except QueueUnavailable:
            return  # it runs to its end, or the sweeper ends it at its deadline

    @staticmethod
    def age_us(placed: Placed) -> int:
        """Microseconds since the request was put on its way."""
        box = placed.box
        return int((time.monotonic() - box.began_s) * 1e6) if box else 0


def unserved(request_id: str, price: int, reason: Reason) -> Ended:
    """Make the end of a request that is stopped before any worker has begun it."""
    outcome: Outcome = "expired" if reason == "deadline" else "cancelled"
    return Ended(request_id, 0, outcome, reason, Units(), Phases(), price)
