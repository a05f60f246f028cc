"""What goes on beside the calls, from the first call to the last."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import structlog
from litestar import Litestar

from gateway.app.parts import Parts
from gateway.errors import Unavailable
from gateway.heap import freeze_heap
from gateway.queues.port import QueueUnavailable

log = structlog.get_logger()

FIRST_LOOK_S = 5.0


@contextlib.asynccontextmanager
async def running(parts: Parts, _: Litestar | None = None) -> AsyncIterator[None]:
    """Run what goes on beside the calls, from the first call to the last."""
    await _first_look(parts)
    stopping = asyncio.Event()
    tasks = [
        _guarded(name, work)
        for name, work in (
            ("keyring", parts.keyring.run(stopping)),
            ("catalog", parts.catalog.run(stopping)),
            ("replies", _listen(parts)),
            ("floor", parts.floor.run()),
            ("sampler", parts.sampler.run()),
            ("resend", parts.resend.run()),
            ("departures", parts.departures.run()),
        )
    ]
    freeze_heap()
    try:
        yield
    finally:
        stopping.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await parts.close()


async def _first_look(parts: Parts) -> None:
    """Wait for keys and catalog, so that the first calls meet them; not for ever, since Postgres may be away."""
    with contextlib.suppress(Unavailable, TimeoutError):
        async with asyncio.timeout(FIRST_LOOK_S):
            await parts.keyring.refresh()
            await parts.catalog.refresh()


async def _listen(parts: Parts) -> None:
    """Open the reply channel as soon as Redis is there."""
    while True:
        try:
            await parts.replies.open()
        except QueueUnavailable:
            await asyncio.sleep(0.2)
        else:
            return


def _guarded(name: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Start work that is never to end; when it does by a fault, the process ends with it and is started afresh."""
    task = asyncio.create_task(work, name=name)

    def ended(done: "asyncio.Task[None]") -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            log.critical("gateway.fault", task=name, exc_info=error)
            os._exit(70)

    task.add_done_callback(ended)
    return task
