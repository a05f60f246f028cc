"""`faregate settler`: the process that charges what has ended, and sweeps what was left behind."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import click
import structlog
import uvloop

from gateway.blobs.choice import open_blobs
from gateway.catalog.snapshot import SnapshotSource
from gateway.commands.books_keeper import run_books
from gateway.commands.webhook_sender import run_webhooks
from gateway.db.session import slow_engine
from gateway.flow.chronicle import Chronicle
from gateway.flow.hand_over import Arrivals
from gateway.flow.orders import OrderKeeper
from gateway.flow.settle import Settler
from gateway.flow.sweep import Sweeper
from gateway.heap import freeze_heap
from gateway.ledger.closing.closer import HourCloser
from gateway.ledger.open_requests import OpenRequests
from gateway.ledger.retention import Retention
from gateway.ledger.settlement import Settlement
from gateway.log import configure_logs
from gateway.media.sweep import MediaSweeper
from gateway.process import is_away, process_name, process_settings
from gateway.queues.histories import RedisHistories
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler
from gateway.reports.backtest.runner import BacktestRunner
from gateway.settings import Settings
from gateway.settler_metrics import SettlerMetrics

log = structlog.get_logger()

FIRST_LOOK_S = 0.2


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
    metrics = SettlerMetrics()
    stop_metrics = (
        metrics.serve(settings.host, settings.settler_metrics_port) if settings.settler_metrics_port else None
    )
    engine = slow_engine(settings.database_url)
    catalog = SnapshotSource(engine, every_s=settings.snapshot_s)
    queues, side = RedisQueues(settings.redis_url), RedisSettler(settings.redis_url, process_name())
    open_requests = OpenRequests(engine)
    arrivals = Arrivals(
        queues=side,
        queue=queues.pool,
        open_requests=open_requests,
        snapshot=catalog.snapshot,
        metrics=metrics,
    )
    settlement = Settlement(settings.database_url, keep_output_s=settings.keep_output_s)
    worker = Settler(
        queues=arrivals,
        settlement=settlement,
        snapshot=catalog.snapshot,
        refresh=catalog.refresh,
        is_away=is_away,
        batch=settings.settle_batch,
        metrics=metrics,
    )
    chronicle = Chronicle(RedisHistories(queues.wire), catalog.snapshot)
    worker.listeners.append(chronicle.ended)
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
    media = MediaSweeper(
        engine, open_blobs(settings.blobs), keep_s=settings.keep_output_s, every_s=settings.media_sweep_s
    )
    closer = HourCloser(engine)
    books = run_books(settings, side.missing, metrics, stopping)
    webhooks = run_webhooks(settings, queues.pool, catalog.snapshot, metrics, stopping)
    await _together(
        catalog.run(stopping),
        worker.run(stopping),
        sweeper.run(stopping),
        media.run(stopping),
        chronicle.run(stopping),
        closer.run(stopping),
        BacktestRunner(engine).run(stopping),
        OrderKeeper(engine, queues.operator).run(stopping),
        Retention(engine, keep_records_s=settings.keep_records_s).run(stopping),
        webhooks,
        books,
    )
    await settlement.close()
    await side.close()
    await queues.close()
    await engine.dispose()
    if stop_metrics is not None:
        stop_metrics()


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


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """Run all until they end; a fault in one ends the process, which is started afresh."""
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)


commands: list[click.Command] = [settler]
