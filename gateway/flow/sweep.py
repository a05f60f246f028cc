"""In the settler, every few seconds: nothing that was accepted is forgotten.

Leases that expired go back to their queue, and what has been taken too often is given up. Open requests
that Redis knows nothing of are put back from Postgres, while their queue is short; a synchronous one,
whose payload only its gateway had, is left to that gateway as long as it lives. What is past its deadline
is ended.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import structlog

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended
from gateway.contract.phases import Phases
from gateway.contract.request import Plan, Request
from gateway.contract.states import Outcome, Reason
from gateway.contract.units import Units
from gateway.flow.settle import Settler
from gateway.ledger.open_requests import OpenRequest, OpenRequests
from gateway.queues.port import GatewaySide, QueueUnavailable, SettlerSide, Waiting

log = structlog.get_logger()

ORPHAN_S = 4.0
"""How old an open request is before it is looked for."""
MOST = 1_000
"""Requests looked at in one round, and the longest queue that anything is put back into: see ledger/README.md."""
DEADLINE_GRACE_S = 3.0
"""How long after its deadline a running request may still end by its worker's word."""
LEFT_S = 20.0
"""How long a request may be lost while its gateway lives. A gateway whose caller waits puts it back in 4 s."""
FORGET_S = 600.0
GATEWAY_SILENT_S = 15.0
"""How long a gateway may be silent before its synchronous requests count as left."""


class Sweeper:
    """Looks after everything that is open."""

    def __init__(
        self,
        *,
        queues: SettlerSide,
        queue: Callable[[str], GatewaySide],
        open_requests: OpenRequests,
        settler: Settler,
        snapshot: Callable[[], Snapshot],
        is_away: Callable[[BaseException], bool],
        every_s: float,
    ) -> None:
        self._queues = queues
        self._queue = queue
        self._open_requests = open_requests
        self._settler = settler
        self._snapshot = snapshot
        self._is_away = is_away
        self._every_s = every_s
        self._lost_s: dict[str, float] = {}
        """When a synchronous request was first found to be lost from Redis."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Sweep until told to stop."""
        while not stopping.is_set():
            try:
                await self.round()
            except Exception as error:
                away = isinstance(error, QueueUnavailable) or self._is_away(error)
                log.warning("sweep.retry", error=type(error).__name__, away=away, exc_info=None if away else error)
            await asyncio.sleep(self._every_s)

    async def round(self) -> None:
        """Sweep every pool once."""
        metrics = self._settler.metrics
        metrics.sweep()
        for pool in self._snapshot().pools.values():
            swept = await self._queues.sweep(pool.name, pool.attempts)
            if swept.returned or swept.given_up:
                metrics.swept("returned", swept.returned)
                metrics.swept("given_up", len(swept.given_up))
                log.warning("sweep.leases", pool=pool.name, returned=swept.returned, given_up=swept.given_up)
        await self._end_overdue()
        orphans: dict[str, list[OpenRequest]] = defaultdict(list)
        for row in await self._open_requests.older_than(ORPHAN_S, limit=MOST):
            orphans[row.pool].append(row)
        for name, rows in orphans.items():
            await self._find(name, rows)
        await self._open_requests.prune()
        now_s = time.monotonic()
        self._lost_s = {one: since_s for one, since_s in self._lost_s.items() if now_s - since_s < FORGET_S}

    async def _find(self, pool: str, rows: Sequence[OpenRequest]) -> None:
        """Deal with open requests that are neither queued, leased nor waiting to be settled."""
        missing = await self._queues.missing(pool, [row.id for row in rows])
        if not missing:
            return
        still_open = set(await self._open_requests.still_open(list(missing)))
        lost = [row for row in rows if row.id in still_open]
        depth = await self._queue(pool).depth()
        kept = [row for row in lost if row.payload is not None]
        if kept and depth.waiting < MOST and pool in self._snapshot().pools:
            log.warning("sweep.put_back", pool=pool, requests=len(kept))
            self._settler.metrics.swept("put_back", len(kept))
            await self._queue(pool).enqueue([Waiting(self._request(row), attempt=missing[row.id]) for row in kept])
        alive = await self._queues.gateways(GATEWAY_SILENT_S)
        await self._end(
            [row for row in lost if row.payload is None and self._is_left(row, alive)], "failed", "gateway_lost"
        )

    def _is_left(self, row: OpenRequest, alive: set[str]) -> bool:
        """Say whether nobody will put a synchronous request back: its gateway is gone, or has let it lie."""
        now_s = time.monotonic()
        since_s = self._lost_s.setdefault(row.id, now_s)
        return row.gateway not in alive or now_s - since_s > LEFT_S

    def _request(self, row: OpenRequest) -> Request:
        """Make the queue's request anew from what Postgres keeps."""
        assert row.payload is not None
        plan = row.plan or Plan(self._snapshot().model_names[row.model_id])
        return Request(
            id=row.id,
            account=row.account_id,
            model=plan.model,
            task=row.task,
            input=row.payload,
            price=row.price_version_id,
            reply=row.gateway,
            keep=True,
            enqueued_us=row.created_us,
            deadline_ms=row.deadline_us // 1000,
            only=plan.only,
            legs=plan.legs,
        )

    async def _end_overdue(self) -> None:
        """End what is past its deadline.

        Waiting ones at once, running ones by their worker, and, after a grace, all.
        """
        overdue = await self._open_requests.overdue(0.0, limit=MOST)
        pools = self._snapshot().pools
        late = [row for row in overdue if row.late_s > DEADLINE_GRACE_S or row.pool not in pools]
        await self._end(late, "expired", "deadline")
        for row in overdue:
            if row.pool in pools:
                await self._queue(row.pool).cancel(_ended(row, "expired", "deadline"))

    async def _end(self, rows: Sequence[OpenRequest], outcome: Outcome, reason: Reason) -> None:
        if rows:
            log.warning("sweep.ended", outcome=outcome, reason=reason, requests=len(rows))
            self._settler.metrics.swept("ended", len(rows))
            await self._settler.settle([_ended(row, outcome, reason) for row in rows])


def _ended(row: OpenRequest, outcome: Outcome, reason: Reason) -> Ended:
    return Ended(row.id, 0, outcome, reason, Units(), Phases(), row.price_version_id, reply=row.gateway)
