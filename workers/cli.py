"""The command `python -m workers`: one worker of a pool, or tiny models for a machine without weights."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click
import uvloop

from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_worker import RedisWorker
from workers.log import configure_logs
from workers.settings import SettingsError, WorkerSettings, load_settings
from workers.tiny.models import UnknownTinyModel, make_tiny
from workers.worker import Worker

USAGE = 2
"""The exit code of a command that cannot start as it was called."""


@click.group(invoke_without_command=True)
@click.option("--pool", help="The pool to pull from.")
@click.option("--name", help="How this worker is called in reports.")
@click.option("--redis-url", help="Redis or Valkey, as redis://host:port/0.")
@click.option("--blob-url", help="Where media lie: a folder, or s3://bucket/prefix.")
@click.option("--models-dir", type=click.Path(path_type=Path), help="The folder of local and tiny models.")
@click.pass_context
def main(
    context: click.Context,
    pool: str | None,
    name: str | None,
    redis_url: str | None,
    blob_url: str | None,
    models_dir: Path | None,
) -> None:
    """Run one worker until SIGTERM, which drains it. Further settings: FAREGATE_WORKER_* in the environment."""
    if context.invoked_subcommand is not None:
        return
    try:
        settings = load_settings(
            os.environ, pool=pool, name=name, redis_url=redis_url, blob_url=blob_url, models_dir=models_dir
        )
    except SettingsError as error:
        click.echo(str(error), err=True)
        sys.exit(USAGE)
    configure_logs(settings.log_level, pool=settings.pool)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(serve(settings)))


async def serve(settings: WorkerSettings) -> int:
    """Run a worker on Redis until a signal drains it; answers its exit code."""
    queue, others = RedisWorker(settings.redis_url, settings.pool), RedisQueues(settings.redis_url)
    worker = Worker(settings, queue, others.pool)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stopping.set)
    try:
        return await worker.run()
    finally:
        await queue.close()
        await others.close()


@main.command("make-tiny")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
def make_tiny_models(folder: Path, names: tuple[str, ...]) -> None:
    """Make tiny models of random weights under FOLDER: those of NAMES, or all."""
    try:
        made = make_tiny(folder, names)
    except ModuleNotFoundError as error:
        click.echo(f"These models need the packages of an engine, and {error.name} is not installed.", err=True)
        sys.exit(USAGE)
    except (UnknownTinyModel, OSError) as error:
        click.echo(str(error), err=True)
        sys.exit(USAGE)
    for path, new in made:
        click.echo(f"{path} {'made' if new else 'was there'}")
