"""Makes the lines of pools and workers from what Redis, Postgres and the estimates say."""

import time
from collections import deque
from collections.abc import Sequence

from gateway.admin.live.heads import SHOWN_REQUESTS, SHOWN_TENANTS, Heads
from gateway.admin.live.snapshot import NextUp, PoolLine, Tenant, WorkerLine, WorkerStand
from gateway.catalog.model import Snapshot as Catalog
from gateway.queues.limits import SILENT_MS
from gateway.queues.operators import Look, Seen
from gateway.routing.estimate import Estimates

RATES_OVER = 11
"""Looks that a rate is made from: ten seconds."""
GONE_AFTER_MS = 15 * 60_000
"""A silent worker is shown for so long; one that had ended its work, no longer than its heartbeat lasts."""


class Rates:
    """How many requests come to a pool and leave it in a second, from looks of late."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int]] = deque(maxlen=RATES_OVER)

    def looked(self, look: Look) -> tuple[float | None, float | None]:
        """Note a look. Answers both rates; None where there is nothing to compare it with."""
        here = look.waiting + look.leased
        if self._looks and self._looks[-1][1] > look.entered:
            self._looks.clear()  # Redis was emptied in between
        self._looks.append((time.monotonic(), look.entered, here))
        (then_s, entered, before), now_s = self._looks[0], self._looks[-1][0]
        if now_s - then_s < 0.5:
            return None, None
        came = look.entered - entered
        return came / (now_s - then_s), max(came - (here - before), 0) / (now_s - then_s)


def pool_line(
    name: str, look: Look, rates: Rates, heads: Heads, catalog: Catalog, estimates: Estimates, trend: Sequence[int]
) -> PoolLine:
    """Make the line of a pool."""
    came, left = rates.looked(look)
    workers = [line for seen in look.workers if (line := _worker_line(seen, look)) is not None]
    tenants = heads.tenants.get(name, ())
    next_hundred = max(sum(tenant.soon for tenant in tenants), 1)
    requests = [(at, heads.requests.get(one)) for at, one in enumerate(look.head[:SHOWN_REQUESTS])]
    return PoolLine(
        name=name,
        engine=catalog.pools[name].engine,
        paused=look.paused,
        waiting=look.waiting,
        running=look.leased,
        capacity=sum(line.status.capacity for line in workers if line.stand != "silent"),
        settling=look.settling,
        oldest_at=min((tenant.oldest_at for tenant in tenants), default=None),
        is_whole=look.waiting <= len(look.head),
        in_per_s=came,
        out_per_s=left,
        eta=estimates.eta(name, "", look.waiting, look.leased),
        trend=[*trend, look.waiting],
        tenants=[
            Tenant(
                account_id=tenant.account_id,
                name=tenant.name,
                waiting=tenant.waiting,
                position=tenant.position,
                share_percent=round(100 * tenant.soon / next_hundred),
                oldest_at=tenant.oldest_at,
                eta=estimates.eta(name, "", tenant.position, look.leased),
            )
            for tenant in tenants[:SHOWN_TENANTS]
        ],
        next_up=[
            NextUp(
                id=one.id,
                account=one.account,
                model=catalog.model_names.get(one.model_id, ""),
                position=at,
                created_at=one.created_at,
            )
            for at, one in requests
            if one is not None
        ],
        workers=workers,
    )


def _worker_line(seen: Seen, look: Look) -> WorkerLine | None:
    """Make the line of a worker; None where it has gone for good."""
    status, ordered = seen.status, seen.status.worker in look.drained
    if seen.age_ms > GONE_AFTER_MS or (
        seen.age_ms > SILENT_MS and status.draining and not status.running and not ordered
    ):
        return None
    return WorkerLine(status=status, stand=_stand(seen, ordered), age_ms=seen.age_ms, ordered=ordered)


def _stand(seen: Seen, ordered: bool) -> WorkerStand:
    status = seen.status
    states = {state.state for state in status.models.values()}
    if seen.age_ms > SILENT_MS:
        return "silent"
    if status.draining or ordered:
        return "draining" if status.running or not status.draining else "drained"
    if not status.capacity and "loading" in states:
        return "loading"
    if states and states <= {"failed"}:
        return "failed"
    return "serving" if status.running else "idle"
