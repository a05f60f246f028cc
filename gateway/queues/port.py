"""What a queue does, whatever it is made of. The Redis sides and the twin in memory pass one conformance suite."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

import msgspec

from gateway.contract.events import Ended, Event, Frame
from gateway.contract.pools import PoolSpec, WorkerStatus
from gateway.contract.request import Request
from gateway.contract.states import Reason


class QueueUnavailable(Exception):
    """Redis is away, or did not answer. Whether a change in flight has been made is not known."""


class EventsLost(Exception):
    """Kept events between those that were read and those that are left are gone: what was read cannot be continued."""


class Waiting(msgspec.Struct, frozen=True):
    """A request to be put into a queue; `cost` is its expected work divided by its weight, in any one measure."""

    request: Request
    cost: float = 1.0


class Taken(msgspec.Struct, frozen=True):
    """A request under lease. `attempt` counts from 1; it fences what this taking may still do."""

    request: Request
    attempt: int
    taken_us: int
    """The server's Unix microseconds when it was taken."""


class Cancel(msgspec.Struct, frozen=True):
    """A leased request that is to stop, and why: what its end then says."""

    id: str
    reason: Reason


class Beat(msgspec.Struct, frozen=True):
    """The answer to a heartbeat: leases that are no longer this worker's, and requests it must stop."""

    lost: list[str]
    cancelled: list[Cancel]


class Swept(msgspec.Struct, frozen=True):
    """What a sweep of the leases did.

    How many went back to the queue, and which were given up (their end stands in the settlements).
    """

    returned: int
    given_up: list[str]


class Standing(msgspec.Struct, frozen=True):
    """Where a request is: its place in the queue (0 is next), or under lease with its attempt, or neither."""

    state: Literal["queued", "leased", "absent"]
    position: int = 0
    attempt: int = 0


class Depth(msgspec.Struct, frozen=True):
    """How full a pool is; `settling` counts stream entries that are not settled yet."""

    waiting: int
    leased: int
    settling: int


class Settlement(msgspec.Struct, frozen=True):
    """An entry of the settlements stream: acknowledged only after its charges have committed."""

    entry: str
    ended: list[Ended]


class GatewaySide(Protocol):
    """What gateways do with the queue of one pool."""

    async def enqueue(self, items: Sequence[Waiting]) -> int:
        """Put requests in; one that is queued or leased already is left alone. Answers how many wait now."""
        ...

    async def cancel(self, ended: Ended) -> Literal["removed", "told", "absent"]:
        """Stop a request.

        A waiting one is removed and `ended` goes to the settlements in the same step; a leased one's worker is told.
        """
        ...

    async def standing(self, request_id: str) -> Standing:
        """Say where a request is."""
        ...

    async def depth(self) -> Depth:
        """Say how full the pool is."""
        ...

    def events(self, request_id: str, after: str = "") -> AsyncIterator[tuple[str, Event]]:
        """Yield the kept events of a request after the entry `after`, and go on as they come, to `Ended`."""
        ...

    async def alive(self, gateway: str) -> None:
        """Give a sign of life of a gateway, every second or so."""
        ...

    async def publish_spec(self, spec: PoolSpec) -> None:
        """Tell workers what the pool serves."""
        ...

    async def workers(self) -> list[WorkerStatus]:
        """List the workers whose last heartbeat is younger than three heartbeats."""
        ...


class WorkerSide(Protocol):
    """What workers do with the queue of one pool."""

    async def spec(self) -> PoolSpec | None:
        """Read what the pool serves; None while nobody has said so."""
        ...

    async def take(self, most: int, *, wait_s: float) -> list[Taken]:
        """Take up to `most` requests under lease, waiting without polling up to `wait_s` for the first."""
        ...

    async def beat(self, request_ids: Sequence[str], status: WorkerStatus) -> Beat:
        """Extend the leases of `request_ids`, all in one command, and leave the worker's status."""
        ...

    def cancels(self) -> AsyncIterator[Cancel]:
        """Yield leased requests that are to stop, as they are told; a heartbeat repeats them."""
        ...

    async def finish(self, ended: Sequence[Ended]) -> list[str]:
        """Put terminal events into the settlements, give up their leases, and tell who waits, in one step.

        Answers the fenced ids: they left no trace.
        """
        ...

    async def emit(self, frames: Sequence[tuple[Request, Frame]]) -> None:
        """Send what one tick produced: to reply channels in coalesced frames, and to the event log of kept requests."""
        ...

    async def give_back(self, request_ids: Sequence[str]) -> None:
        """Return leased requests that did not begin to the front of the queue, at no attempt's cost."""
        ...


class SettlerSide(Protocol):
    """What settlers and the sweeper do with the queues of all pools."""

    async def settlements(self, pools: Sequence[str], most: int, *, wait_s: float) -> list[tuple[str, Settlement]]:
        """Read new entries `(pool, entry)`, first those that another settler took and left for 5 s.

        Waits up to `wait_s`.
        """
        ...

    async def settled(self, entries: Sequence[tuple[str, str]]) -> None:
        """Acknowledge and remove entries `(pool, entry)`: their charges have committed."""
        ...

    async def announce(self, replies: Sequence[tuple[str, Frame]]) -> None:
        """Tell reply channels `(channel, frame)` what has been settled."""
        ...

    async def sweep(self, pool: str, attempts: int) -> Swept:
        """Return expired leases to the front of their queue; give up what was taken `attempts` times."""
        ...

    async def missing(self, pool: str, request_ids: Sequence[str]) -> list[str] | None:
        """Say which ids are neither queued, leased nor in the settlements.

        None when there are too many unsettled to tell.
        """
        ...

    async def gateways(self, silent_s: float) -> set[str]:
        """Name the gateways that gave a sign of life in the last `silent_s` seconds."""
        ...
