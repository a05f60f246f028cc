"""What a queue does, whatever it is made of. The Redis sides and the twin in memory pass one conformance suite."""

from collections.abc import AsyncIterator, Mapping, Sequence
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
    """A request to be put into a queue; `cost` is its expected work divided by its weight, in any one measure.

    `attempt` is the number of its last attempt in another pool: the next taking counts on from it.
    """

    request: Request
    cost: float = 1.0
    attempt: int = 0


class Taken(msgspec.Struct, frozen=True):
    """A request under lease. `attempt` counts from 1; it fences what this taking may still do."""

    request: Request
    attempt: int
    taken_us: int
    """The server's Unix microseconds when it was taken."""
    excused: int = 0
    """How many takings before do not count towards giving up: given back, or in another pool."""


class Move(msgspec.Struct, frozen=True):
    """A request that goes on in another pool: what it is there, and the number of its last attempt before."""

    request: Request
    pool: str
    """Where it goes on."""
    attempt: int
    lost: bool = False
    """Whether its workers were lost, and it was given up: no worker has left word of it."""


class Cancel(msgspec.Struct, frozen=True):
    """A leased request that is to stop, and why: what its end then says."""

    id: str
    reason: Reason


class Beat(msgspec.Struct, frozen=True):
    """The answer to a heartbeat: leases that are no longer this worker's, and requests it must stop."""

    lost: list[str]
    cancelled: list[Cancel]
    drain: bool = False
    """Whether an operator wants it to take no more."""


class Swept(msgspec.Struct, frozen=True):
    """What a sweep of the leases did.

    How many went back to the queue, and which were given up (their end stands in the settlements).
    """

    returned: int
    given_up: list[str]


class Standing(msgspec.Struct, frozen=True):
    """Where a request is: its place in the queue (0 is next), or under lease with its attempt, or neither.

    `pool` is where it went on; empty where it is in the pool that was asked.
    """

    state: Literal["queued", "leased", "absent"]
    position: int = 0
    attempt: int = 0
    pool: str = ""


class Depth(msgspec.Struct, frozen=True):
    """How full a pool is; `settling` counts stream entries that are not settled yet."""

    waiting: int
    leased: int
    settling: int


class Settlement(msgspec.Struct, frozen=True):
    """An entry of the settlements stream: acknowledged only after its charges have committed.

    One with a `move` has no end: it is acknowledged when the request is in its next queue.
    """

    entry: str
    ended: list[Ended]
    move: Move | None = None
    again: bool = False
    """Whether another settler, or this one, has read it before, and may have done a part of it."""


class GatewaySide(Protocol):
    """What gateways do with the queue of one pool.

    A request that has left this pool for another is followed there: by `cancel`, `standing`, `events` and `latest`.
    """

    async def enqueue(self, items: Sequence[Waiting]) -> int:
        """Put requests in; one that is queued or leased already is left alone. Answers how many wait now.

        So is one that has left this pool for another, unless it comes back with an attempt as late as it left with.
        """
        ...

    async def cancel(self, ended: Ended) -> Literal["removed", "told", "absent"]:
        """Stop a request.

        A waiting one is removed and `ended` goes to the settlements in the same step; a leased one's worker is told.
        One that is on its way into another pool is stopped when it is there (SettlerSide.stops), and counts as absent.
        """
        ...

    async def end(self, ended: Ended) -> None:
        """Put the end of a request into the settlements that is in no queue: nobody else will end it."""
        ...

    async def standing(self, request_id: str) -> Standing:
        """Say where a request is."""
        ...

    async def place(self, account: int, cost: float) -> int:
        """Say how many would be before a request of this account and cost that was put in now."""
        ...

    async def depth(self) -> Depth:
        """Say how full the pool is."""
        ...

    def events(self, request_id: str, after: str = "") -> AsyncIterator[tuple[str, Event]]:
        """Yield the kept events of a request after the entry `after`, and go on as they come, to `Ended`."""
        ...

    async def latest(self, request_id: str) -> Event | None:
        """Give the latest kept event of a request; None where nothing is kept of it."""
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

    async def hand_over(self, moves: Sequence[Move]) -> list[str]:
        """Let leased requests go on in other pools: give up their leases, leave word, and send them on, in one step.

        Answers the fenced ids: they left no trace. Repeating it is safe.
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

    async def leave_word(self, pool: str, moves: Sequence[Move]) -> None:
        """Leave word in a pool of requests that it gave up, and that go on in others."""
        ...

    async def stops(self, pool: str, request_ids: Sequence[str]) -> list[Ended]:
        """Give the ends of requests that were to stop while they were on their way from this pool into another."""
        ...

    async def arrived(self, pool: str, attempts: Mapping[str, int]) -> set[str]:
        """Say which requests have come into a pool after attempts of these numbers in others, and may have ended."""
        ...

    async def forget(self, pool: str, request_ids: Sequence[str]) -> None:
        """Drop the word that this pool keeps of requests that went on in others, and have ended there."""
        ...

    async def announce(self, replies: Sequence[tuple[str, Frame]]) -> None:
        """Tell reply channels `(channel, frame)` what has been settled."""
        ...

    async def sweep(self, pool: str, attempts: int) -> Swept:
        """Return expired leases to the front of their queue; give up what was taken `attempts` times."""
        ...

    async def missing(self, pool: str, request_ids: Sequence[str]) -> dict[str, int] | None:
        """Say which ids are neither queued, leased nor in the settlements, here or where they went on from here.

        Each with the number of its last attempt as far as anything is known of it, to be put in again with.
        None when there are too many unsettled to tell.
        """
        ...

    async def gateways(self, silent_s: float) -> set[str]:
        """Name the gateways that gave a sign of life in the last `silent_s` seconds."""
        ...
