"""Queues and workers: whether work will finish in time."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.response import ServerSentEvent

from gateway.admin.live.sampler import Sampler
from gateway.admin.live.snapshot import PoolLine, Snapshot, WorkerLine
from gateway.admin.pages.queue_orders import QUEUE_ORDERS
from gateway.admin.site.page import page
from gateway.admin.site.view import View

MOST_STREAM_S = 600.0
"""A stream ends after so long and is opened again: by then its session may be over."""
POOL_COLUMNS = ("pool", "engine", "paused", "waiting", "running", "capacity", "oldest_at", "in_per_s", "out_per_s")
ETA_COLUMNS = ("start_p50_s", "start_p90_s")
_TONES = {
    "silent": "bad",
    "failed": "bad",
    "loading": "info",
    "draining": "warn",
    "drained": "warn",
    "serving": "good",
    "idle": "off",
}


@page("/admin/queues")
async def show_queues(view: NamedDependency[View], sampler: NamedDependency[Sampler]) -> Response[Any]:
    """Show all pools and workers as they are now."""
    snapshot = await sampler.now()
    if view.format == "csv":
        return view.csv("queues", [*POOL_COLUMNS, *ETA_COLUMNS], [_row(pool) for pool in snapshot.pools])
    if view.format == "json":
        return view.json({"at": snapshot.at, "away": snapshot.away, "pools": [_plain(pool) for pool in snapshot.pools]})
    return view.render("queues.html", snapshot=snapshot, tones=_TONES)


@page("/admin/queues/live", data=False)
async def follow_queues(view: NamedDependency[View], sampler: NamedDependency[Sampler]) -> ServerSentEvent:
    """Stream the live part of the page, a look a second."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return ServerSentEvent(_messages(view, sampler), headers=headers)


async def _messages(view: View, sampler: Sampler) -> AsyncIterator[str]:
    write = partial(_write, view)
    looks = sampler.follow()
    try:
        async with asyncio.timeout(MOST_STREAM_S):
            async for snapshot in looks:
                yield sampler.written(snapshot, view.visitor.role, write)
    except TimeoutError:
        return
    finally:
        await looks.aclose()


def _write(view: View, snapshot: Snapshot) -> str:
    return str(view.render("queues_live.html", snapshot=snapshot, tones=_TONES).content)


def _row(pool: PoolLine) -> list[object]:
    eta = [pool.eta.start.p50, pool.eta.start.p90] if pool.eta else [None, None]
    oldest_at = pool.oldest_at.isoformat() if pool.oldest_at else None
    return [
        *(pool.name, pool.engine, pool.paused, pool.waiting, pool.running, pool.capacity, oldest_at),
        *(pool.in_per_s, pool.out_per_s, *eta),
    ]


def _plain(pool: PoolLine) -> dict[str, Any]:
    return {
        **dict(zip((*POOL_COLUMNS, *ETA_COLUMNS), _row(pool), strict=True)),
        "tenants": pool.tenants,
        "next": pool.next_up,
        "workers": [_worker(line) for line in pool.workers],
    }


def _worker(line: WorkerLine) -> dict[str, Any]:
    status = line.status
    return {
        "worker": status.worker,
        "stand": line.stand,
        "heartbeat_age_ms": line.age_ms,
        "running": status.running,
        "capacity": status.capacity,
        "memory_bytes": status.memory_bytes,
        "version": status.version,
        "models": {name: state.state for name, state in status.models.items()},
        "times": status.times,
    }


PAGES = (show_queues, follow_queues, *QUEUE_ORDERS)
