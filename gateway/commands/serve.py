"""`faregate gateway` and `faregate settler`: the two service processes of this side."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Coroutine
from typing import Any

import click
import structlog
import uvicorn
import uvloop

from gateway.app import create_app, is_away, process_name
from gateway.blobs.local import LocalBlobs
from gateway.catalog.snapshot import SnapshotSource
from gateway.commands.draining import DrainingServer
from gateway.db.session import slow_engine
from gateway.flow.settle import Settler
from gateway.flow.sweep import Sweeper
from gateway.heap import freeze_heap
from gateway.ledger.open_requests import OpenRequests
from gateway.ledger.settlement import Settlement
from gateway.log import configure_logs
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_settler import RedisSettler
from gateway.settings import Settings, SettingsError, load_settings

log = structlog.get_logger()

DRAIN_S = 25
"""How long a gateway that is told to stop waits for the calls it serves."""
FIRST_LOOK_S = 0.2
TIDY_S = 3600.0


def _settings() -> Settings:
    try:
        return load_settings(os.environ)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None


@click.command("gateway")
def gateway() -> None:
    """Serve the REST API, configured by FAREGATE_ settings."""
    settings = _settings()
    configure_logs(settings.log_level, role="gateway")
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        interface="asgi3",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        log_level="warning",
        backlog=4096,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN_S,
    )
    inherited = [socket.socket(fileno=settings.listen_fd)] if settings.listen_fd >= 0 else None
    DrainingServer(config, app.litestar.state.readiness, settings.drain_notice_s).run(sockets=inherited)


@click.command("settler")
def settler() -> None:
    """Charge what has ended, and sweep what was left behind."""
    settings = _settings()
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


commands: list[click.Command] = [gateway, settler]
