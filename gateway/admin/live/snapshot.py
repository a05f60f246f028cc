"""The pools in one moment, as pages show them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from gateway.contract.pools import WorkerStatus
from gateway.routing.estimate import Eta

WorkerStand = Literal["silent", "loading", "draining", "drained", "serving", "idle", "failed"]
"""`silent`: no heartbeat for three of them. `drained`: told to take no more, and nothing runs any more."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """An account with waiting requests."""

    account_id: int
    name: str
    waiting: int
    position: int
    """Of its first request: 0 is next."""
    share_percent: int
    """How many of the next hundred to be taken are its own."""
    oldest_at: datetime
    eta: Eta | None


class NextUp(msgspec.Struct, frozen=True, kw_only=True):
    """A request at the head of a queue."""

    id: str
    account: str
    model: str
    position: int
    created_at: datetime


class WorkerLine(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as its last heartbeat said."""

    status: WorkerStatus
    stand: WorkerStand
    age_ms: int
    ordered: bool
    """Whether an operator has told it to take no more."""

    @property
    def models(self) -> Sequence[tuple[str, str]]:
        """Its models with their states, those in memory first."""
        order = {"ready": 0, "loading": 1, "on_demand": 2}
        states = [(name, state.state) for name, state in self.status.models.items()]
        return sorted(states, key=lambda one: (order.get(one[1], 3), one[0]))

    @property
    def split(self) -> tuple[int, int, int]:
        """Its time so far in parts of a thousand: loading, working, idle."""
        times = self.status.times
        if not times.up_ms:
            return 0, 0, 1000
        load = min(times.load_ms * 1000 // times.up_ms, 1000)
        busy = min(times.busy_ms * 1000 // times.up_ms, 1000 - load)
        return load, busy, 1000 - load - busy


class PoolLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pool."""

    name: str
    engine: str
    paused: bool
    waiting: int
    running: int
    capacity: int
    settling: int
    oldest_at: datetime | None
    """Since when the oldest waits, of those that were looked at."""
    is_whole: bool
    """Whether all that wait were looked at."""
    in_per_s: float | None
    out_per_s: float | None
    """Of the last ten seconds; None until a second has passed."""
    eta: Eta | None
    """Of a request that would come now."""
    trend: Sequence[int]
    """How many waited, over the last 15 minutes, the oldest first."""
    tenants: Sequence[Tenant]
    next_up: Sequence[NextUp]
    workers: Sequence[WorkerLine]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All pools in one moment."""

    number: int
    at: datetime
    """The moment that it shows."""
    looked_at: datetime
    """When somebody looked last: later than `at` where that showed nothing."""
    pools: Sequence[PoolLine]
    away: str = ""
    """Why this is not the present: what is away; empty where it is."""

    @property
    def workers(self) -> Sequence[WorkerLine]:
        """The workers of all pools: silent ones first, then by pool and name."""
        lines = [line for pool in self.pools for line in pool.workers]
        return sorted(lines, key=lambda line: (line.stand != "silent", line.status.pool, line.status.worker))

    def pool(self, name: str) -> PoolLine | None:
        """Find a pool."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def worker(self, name: str) -> WorkerLine | None:
        """Find a worker."""
        return next((line for line in self.workers if line.status.worker == name), None)
