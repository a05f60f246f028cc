"""Step 9, in the settler: terminal events become charges, exactly once, whichever gateway accepted the request."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog
from msgspec.structs import astuple

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended, Frame, Settled
from gateway.contract.phases import PHASE_NAMES
from gateway.contract.units import UNIT_NAMES
from gateway.flow.hand_over import Arrivals
from gateway.flow.reckon import reckoned
from gateway.ledger.endings import Ending
from gateway.ledger.settlement import Charged, Settlement
from gateway.log import log_requests
from gateway.pricing.rate import depends
from gateway.queues.port import QueueUnavailable
from gateway.settler_metrics import SettlerMetrics

log = structlog.get_logger()

WAIT_S = 1.0
"""How long one read waits for settlements; also how late a stop is noticed."""
PAUSE_S = 0.5
"""Between two tries while Postgres or Redis is away."""
TERMS_S = 60.0
"""After a request with terms, for so long those of all are looked up before they are rated."""


class Settler:
    """Reads the settlements of all pools, rates them, charges them in batches, and tells who waits."""

    def __init__(
        self,
        *,
        queues: Arrivals,
        settlement: Settlement,
        snapshot: Callable[[], Snapshot],
        refresh: Callable[[], Awaitable[None]],
        is_away: Callable[[BaseException], bool],
        batch: int,
        metrics: SettlerMetrics,
    ) -> None:
        self._queues = queues
        self._settlement = settlement
        self._snapshot = snapshot
        self._refresh = refresh
        self._is_away = is_away
        self._batch = batch
        self._terms_until = 0.0
        self.metrics = metrics
        self.listeners: list[Callable[[str, Sequence[Ended]], None]] = []
        """Who hears of the ends that came out of a pool, once they are charged."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Settle until told to stop. What could not be charged stays in the stream and is tried again."""
        while not stopping.is_set():
            try:
                await self.round(wait_s=WAIT_S)
            except Exception as error:
                away = isinstance(error, QueueUnavailable) or self._is_away(error)
                log.warning("settle.retry", error=type(error).__name__, away=away, exc_info=None if away else error)
                await asyncio.sleep(PAUSE_S)

    async def round(self, *, wait_s: float) -> int:
        """Settle what is there, at most one batch. Answers how many requests ended."""
        entries = await self._queues.settlements(self._batch, wait_s=wait_s)
        if not entries:
            return 0
        # Steps cost their workflow.
        ended = [(end, pool) for pool, entry in entries for end in entry.ended if not end.parent]
        news: list[tuple[str, Frame]] = []
        for start in range(0, len(ended), self._batch):
            news += await self._charge(ended[start : start + self._batch])
        done = [(pool, entry.entry) for pool, entry in entries]
        await asyncio.gather(self._queues.announce(news), self._queues.settled(done))  # both leave in one write
        await self._queues.forget([end for end, _ in ended])
        for heard in self.listeners:
            for pool, entry in entries:
                heard(pool, entry.ended)
        self.metrics.batch(len(ended), [_lag_s(entry) for _, entry in done])
        return len(ended)

    async def settle(self, ended: Sequence[Ended]) -> None:
        """Charge ended requests and announce it. Raises while Postgres is away; repeating it charges nothing twice."""
        await self._queues.announce(await self._charge([(end, "") for end in ended]))

    async def _charge(self, ended: Sequence[tuple[Ended, str]]) -> list[tuple[str, Frame]]:
        """Charge ended requests, each with the pool that it comes from, and give what is to be announced of it."""
        if any(end.price not in self._snapshot().prices for end, _ in ended):
            await self._refresh()
        by_id = {end.id: (end, pool) for end, pool in ended}
        terms = await self._terms([end for end, _ in by_id.values()])
        rated = [self._rated(end, pool, end.price, terms.get(end.id)) for end, pool in by_id.values()]
        charged = await self._settlement.settle(rated)
        disputed = [row for row in charged if row.mismatch]
        if disputed:
            agreed = [row for row in charged if not row.mismatch]
            self._note(disputed, by_id)
            rated = [self._rated(*by_id[row.id], row.price_version_id, row.terms) for row in disputed]
            charged = agreed + await self._settlement.settle(rated)
        self._log([(by_id[row.id][0], row) for row in charged if row.first])
        return [_news(by_id[row.id][0], row) for row in charged if by_id[row.id][0].reply]

    async def _terms(self, ended: Sequence[Ended]) -> dict[str, str]:
        """Look up the terms of requests, where any have had some lately; a wrong guess costs a second settlement.

        A price with conditions cannot be guessed at: it has no charge without the terms.
        """
        prices = self._snapshot().prices
        if time.monotonic() > self._terms_until and not any(
            (price := prices.get(end.price)) is not None and depends(price) for end in ended
        ):
            return {}
        return await self._settlement.terms([end.id for end in ended])

    def _note(self, disputed: list[Charged], by_id: dict[str, tuple[Ended, str]]) -> None:
        if any(row.terms is not None for row in disputed):
            self._terms_until = time.monotonic() + TERMS_S
        wrong = [row.id for row in disputed if row.price_version_id != by_id[row.id][0].price]
        if wrong:
            log.error("settle.price_mismatch", requests=wrong)

    def _rated(self, end: Ended, pool: str, price_id: int, terms: str | None) -> Ending:
        # A KeyError leaves the event in the stream.
        return reckoned(self._snapshot(), end, pool, price_id, terms)

    def _log(self, rows: list[tuple[Ended, Charged]]) -> None:
        """Write one line for each request that was charged now."""
        self.metrics.settled([row.outcome for _, row in rows])
        log_requests([
            {
                "request_id": end.id,
                "outcome": end.outcome,
                "reason": end.reason,
                "attempt": end.attempt,
                "worker": end.worker,
                "charge_nanos": row.charge_nanos,
                "price_version": end.price,
                "phases_us": {name: us for name, us in zip(PHASE_NAMES, astuple(end.phases), strict=True) if us},
                "units": {name: count for name, count in zip(UNIT_NAMES, astuple(end.units), strict=True) if count},
            }
            for end, row in rows
        ])  # fmt: skip


def _lag_s(entry: str) -> float:
    """Say how old an entry of the stream is: its id begins with the milliseconds at which Redis took it."""
    return time.time() - int(entry.partition("-")[0]) / 1000


def _news(end: Ended, row: Charged) -> tuple[str, Frame]:
    settled = Settled(
        row.id, row.outcome, row.reason, row.charge_nanos, row.hold_nanos, row.units, row.phases, row.attempt
    )
    return end.reply, Frame(row.id, row.attempt, -1, settled)
