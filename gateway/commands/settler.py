"""`faregate settler`: the process that charges what has ended, and sweeps what was left behind."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any

import click
import structlog
import uvloop

from gateway.blobs.local import LocalBlobs
from gateway.catalog.snapshot import SnapshotSource
from gateway.db.session import slow_engine
from gateway.flow.settle import Settler
from gateway.flow.sweep import Sweeper
from gateway.heap import freeze_heap
from gateway.ledger.open_requests import OpenRequests
from gateway.ledger.settlement import Settlement
from gateway.log import configure_logs
from gateway.process import is_away, process_name, process_settings
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler
from gateway.settings import Settings

log = structlog.get_logger()

FIRST_LOOK_S = 0.2
TIDY_S = 3600.0
"""Between two looks for media that are kept no longer."""


@click.command("settler")
def settler() -> None:
    """Charge what has ended, and sweep what was left behind."""
    settings = process_settings()
    configure_logs(settings.log_level, role="settler")
    uvloop.run(_settle(settings))


async def _settle(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    engine = slow_engine(settings.database_url)
    catalog = SnapshotSource(engine, every_s=settings.snapshot_s)
    queues, side = RedisQueues(settings.redis_url), RedisSettler(settings.redis_url, process_name())
    settlement = Settlement(settings.database_url, keep_output_s=settings.keep_output_s)
    open_requests = OpenRequests(engine)
    worker = Settler(
        queues=side,
        settlement=settlement,
        snapshot=catalog.snapshot,
        refresh=catalog.refresh,
        is_away=is_away,
        batch=settings.settle_batch,
    )
    sweeper = Sweeper(
        queues=side,
        queue=queues.pool,
        open_requests=open_requests,
        settler=worker,
        snapshot=catalog.snapshot,
        is_away=is_away,
        every_s=settings.sweep_s,
    )
    await _first_snapshot(catalog, stopping)
    freeze_heap()
    await _together(catalog.run(stopping), worker.run(stopping), sweeper.run(stopping), _tidy(settings, stopping))
    await settlement.close()
    await side.close()
    await queues.close()
    await engine.dispose()


async def _first_snapshot(catalog: SnapshotSource, stopping: asyncio.Event) -> None:
    """Wait for the catalog: without prices nothing can be charged."""
    while not stopping.is_set():
        try:
            await catalog.refresh()
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("settler.waiting", error=type(error).__name__)
            await asyncio.sleep(FIRST_LOOK_S)
        else:
            return


async def _tidy(settings: Settings, stopping: asyncio.Event) -> None:
    """Forget media that are kept no longer, once an hour."""
    blobs = LocalBlobs(settings.blob_dir)
    while not stopping.is_set():
        await asyncio.to_thread(blobs.prune, settings.keep_output_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), TIDY_S)


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """Run all until they end; a fault in one ends the process, which is started afresh."""
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)


commands: list[click.Command] = [settler]
