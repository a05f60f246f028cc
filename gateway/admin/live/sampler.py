"""Looks at all pools once a second while somebody watches, and hands each look to all of them."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.live.heads import NO_HEADS, read_heads
from gateway.admin.live.pool_lines import Rates, pool_line
from gateway.admin.live.snapshot import Snapshot
from gateway.catalog.model import Snapshot as Catalog
from gateway.errors import Unavailable
from gateway.flow.floor import Floor
from gateway.queues.operators import OperatorSide
from gateway.queues.port import QueueUnavailable
from gateway.routing.estimate import Estimates

log = structlog.get_logger()

LOOK_S = 1.0
MOST_HEAD = 1000
"""How far into each queue a look goes."""
TREND_S = 10.0
TREND_POINTS = 89
"""With the present one, fifteen minutes."""
FRESH_S = 1.0
"""A look younger than this serves whoever opens a page."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """What a sampler looks with."""

    catalog: Callable[[], Catalog]
    operator: Callable[[str], OperatorSide]
    floor: Floor
    estimates: Estimates
    engine: AsyncEngine


class Sampler:
    """One a gateway process. What a thousand tabs show costs what one shows: a look a second, written once a role."""

    def __init__(self, means: Sampling) -> None:
        self._means = means
        self._rates: dict[str, Rates] = defaultdict(Rates)
        self._trends: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=TREND_POINTS))
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()
        self._loop: asyncio.Task[None] | None = None
        self._looked_s = 0.0
        self._texts: dict[str, str] = {}
        self.viewers = 0
        self.looks = 0
        """How often it has looked."""
        self.current: Snapshot | None = None

    async def run(self) -> None:
        """Remember how many wait in each pool, from what the floor sees anyway. Never ends."""
        while True:
            await asyncio.sleep(TREND_S)
            for name, state in self._means.floor.pools.items():
                self._trends[name].append(state.depth.waiting)

    async def now(self) -> Snapshot:
        """Give the present, or the last that was seen while Redis is away; looks where nobody did within a second."""
        async with self._turn:
            if self.current is None or asyncio.get_running_loop().time() - self._looked_s > FRESH_S:
                await self._look()
        assert self.current is not None
        return self.current

    async def follow(self) -> AsyncGenerator[Snapshot, None]:
        """Give each look as it comes. Looking begins with the first who follows, and ends with the last."""
        self.viewers += 1
        if self._loop is None:
            self._loop = asyncio.create_task(self._watch(), name="sampler")
        last = 0
        try:
            while True:
                news, current = self._news, self.current
                if current is not None and current.number != last:
                    last = current.number
                    yield current
                await news.wait()
        finally:
            self.viewers -= 1
            if not self.viewers and self._loop is not None:
                self._loop.cancel()
                self._loop = None

    def written(self, snapshot: Snapshot, kind: str, write: Callable[[Snapshot], str]) -> str:
        """Give what a look reads as for one kind of viewer; written by the first who asks."""
        if self.current is not snapshot:
            return write(snapshot)
        if kind not in self._texts:
            self._texts[kind] = write(snapshot)
        return self._texts[kind]

    async def _watch(self) -> None:
        while True:
            async with self._turn:
                await self._look()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        """Look once. While Redis is away the last look stays, and says so."""
        self.looks += 1
        self._looked_s = asyncio.get_running_loop().time()
        catalog = self._means.catalog()
        names = sorted(name for name, pool in catalog.pools.items() if not pool.withdrawn)
        try:
            looks = await asyncio.gather(*(self._means.operator(name).look(MOST_HEAD) for name in names))
        except QueueUnavailable:
            now = datetime.now(UTC)
            last = self.current or Snapshot(number=0, at=now, looked_at=now, pools=())
            self._publish(msgspec.structs.replace(last, number=self.looks, looked_at=now, away="Redis"))
            return
        try:
            heads = await read_heads(
                self._means.engine, {name: look.head for name, look in zip(names, looks, strict=True)}
            )
        except Unavailable as error:
            log.warning("sampler.heads_unread", reason=error.code)
            heads = NO_HEADS
        lines = [
            pool_line(name, look, self._rates[name], heads, catalog, self._means.estimates, self._trends[name])
            for name, look in zip(names, looks, strict=True)
        ]
        now = datetime.now(UTC)
        self._publish(Snapshot(number=self.looks, at=now, looked_at=now, pools=lines))

    def _publish(self, snapshot: Snapshot) -> None:
        self.current = snapshot
        self._texts.clear()
        news, self._news = self._news, asyncio.Event()
        news.set()
