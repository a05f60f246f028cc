"""What operators see of a pool's queue, and the orders that they give: the Redis side and the twin pass one suite."""

from typing import Protocol

import msgspec

from gateway.contract.pools import WorkerStatus


class Seen(msgspec.Struct, frozen=True):
    """A worker's last word about itself, and how long ago that was."""

    status: WorkerStatus
    age_ms: int


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A pool in one moment."""

    waiting: int
    leased: int
    settling: int
    entered: int
    """How many requests have ever come since Redis was empty: two looks say how many came between."""
    head: list[str]
    """The ids of who is next, in their order."""
    paused: bool
    """Whether nobody may take from it."""
    drained: frozenset[str]
    """The workers that are told to take no more."""
    workers: list[Seen]
    """All that have spoken within the hour, silent ones too."""


class OperatorSide(Protocol):
    """What operators do with one pool. Orders stand until they are lifted; what Redis loses is given again."""

    async def look(self, most: int) -> Look:
        """Show the pool, with up to `most` of the head of its queue, in one consistent step."""
        ...

    async def pause(self, *, on: bool) -> bool:
        """Let nobody take from the pool, or everybody again. What runs goes on. Answers whether that is new."""
        ...

    async def drain(self, worker: str, *, on: bool) -> bool | None:
        """Tell a worker to take no more, or to go on; it hears so with its next heartbeat.

        Answers whether that is new, and None where the pool has no such worker.
        """
        ...
