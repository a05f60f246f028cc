"""The whole way of a request through one gateway process."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended
from gateway.contract.phases import Phases
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.flow.admit import admit
from gateway.flow.authenticate import authenticate
from gateway.flow.call import Call
from gateway.flow.enqueue import Enqueued, Posts, enqueue
from gateway.flow.follow import Mailbox, Mailboxes
from gateway.flow.quote import quote
from gateway.flow.resolve import resolve
from gateway.flow.respond import Answer, respond
from gateway.flow.route import route
from gateway.ledger.admission import Admission, Replay
from gateway.ledger.keyring import Keyring
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


class Way:
    """Walks calls through the steps. One a gateway process; holds no state but the open mailboxes."""

    def __init__(
        self,
        *,
        name: str,
        snapshot: Callable[[], Snapshot],
        keyring: Keyring,
        routes: Routes,
        backlog: Backlog,
        admission: Admission,
        queue: Callable[[str], GatewaySide],
    ) -> None:
        self.name = name
        self.snapshot = snapshot
        self.keyring = keyring
        self.mailboxes = Mailboxes()
        self.backlog = backlog
        self.queue = queue
        self._routes = routes
        self._admission = admission
        self._stopping: set[asyncio.Task[None]] = set()
        self._posts = Posts(queue, backlog)

    async def submit(self, call: Call) -> Placed | Replay:
        """Take a call through all steps up to its queue. Raises the FaregateError of the step that refused it."""
        authentic = await authenticate(self.keyring, call)
        routed = route(self._routes, self.backlog, quote(resolve(self.snapshot(), authentic)))
        admitted = await admit(self._admission, self.name, routed)
        if isinstance(admitted, Replay):
            return admitted
        placed = enqueue(self.name, self._posts, admitted)
        return Placed(placed, None if call.mode == "async" else self.mailboxes.open(placed))

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
            self.backlog.ended(placed.enqueued.admitted.routed.pool.name)
            if box.failure is not None and box.settled is None:
                self._leave(placed.enqueued, box.stop_reason)

    def _leave(self, enqueued: Enqueued, reason: Reason) -> None:
        """Stop a request that nobody waits for any more.

        Its worker is told, and its account is settled all the same.
        """
        task = asyncio.get_running_loop().create_task(self._stop(enqueued, reason))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

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
