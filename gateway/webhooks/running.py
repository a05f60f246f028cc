"""Notes that open requests have started and how far they are, where their callers want to be told."""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

import structlog

from gateway.contract.events import Progress
from gateway.contract.ids import request_id_of
from gateway.errors import Unavailable
from gateway.queues.port import GatewaySide, QueueUnavailable
from gateway.webhooks.events import EventKey
from gateway.webhooks.outbox import Outbox, Wanted

log = structlog.get_logger()

LOOK_S = 1.0
PAGE = 500
EVERY_S = 5.0
EVERY_PERCENT = 10
"""A progress is told at most this often, and when it has grown by this much."""

_FIRST = UUID(int=0)


class _Told:
    """What this process has noted of a request: spares a statement, and decides nothing."""

    __slots__ = ("at_s", "percent", "started")

    def __init__(self) -> None:
        self.started = False
        self.percent = 0
        self.at_s = 0.0


class Running:
    """Looks at the open requests with such webhooks, a page at a time."""

    def __init__(self, outbox: Outbox, queue: Callable[[str], GatewaySide], *, every_s: float = LOOK_S) -> None:
        self._outbox = outbox
        self._queue = queue
        self._every_s = every_s
        self._after = _FIRST
        self._told: dict[UUID, _Told] = {}
        self._seen: set[UUID] = set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Look until told to stop."""
        while not stopping.is_set():
            try:
                await self.look()
            except (Unavailable, QueueUnavailable) as error:
                log.warning("webhooks.retry", error=str(error))
            try:
                await asyncio.wait_for(stopping.wait(), self._every_s)
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Look at one page; after the last one the next look begins anew."""
        page = await self._outbox.running(self._after, limit=PAGE)
        await asyncio.gather(*(self._look_at(wanted) for wanted in page))
        self._seen.update(wanted.request for wanted in page)
        if len(page) == PAGE:
            self._after = page[-1].request
            return
        self._after = _FIRST
        self._told = {request: told for request, told in self._told.items() if request in self._seen}
        self._seen.clear()

    async def _look_at(self, wanted: Wanted) -> None:
        queue, request_id = self._queue(wanted.pool), request_id_of(wanted.request)
        told = self._told.setdefault(wanted.request, _Told())
        if not told.started:
            if (await queue.standing(request_id)).state != "leased":
                return
            told.started = True
            if "started" in wanted.events:
                await self._note(EventKey(wanted.request, "started"))
        if "progress" in wanted.events and time.monotonic() - told.at_s >= EVERY_S:
            await self._look_at_progress(wanted.request, queue, told)

    async def _look_at_progress(self, request: UUID, queue: GatewaySide, told: _Told) -> None:
        latest = await queue.latest(request_id_of(request))
        percent = min(int(latest.fraction * 100), 99) if isinstance(latest, Progress) else 0
        if percent >= told.percent + EVERY_PERCENT:
            told.percent, told.at_s = percent, time.monotonic()
            await self._note(EventKey(request, "progress", percent))

    async def _note(self, key: EventKey) -> None:
        await self._outbox.note(key, every_s=EVERY_S, every_percent=EVERY_PERCENT)
