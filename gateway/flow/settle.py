"""Step 9, in the settler: terminal events become charges, exactly once, whichever gateway accepted the request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from gateway.catalog.model import OutcomePolicy, Snapshot
from gateway.contract.events import Ended, Frame, Settled, encode_output
from gateway.contract.phases import PHASE_NAMES
from gateway.contract.units import UNIT_NAMES
from gateway.ledger.settlement import Charged, Ending, Settlement
from gateway.log import log_requests
from gateway.pricing.rate import charge_nanos
from gateway.queues.port import QueueUnavailable, SettlerSide

log = structlog.get_logger()

WAIT_S = 1.0
"""How long one read waits for settlements; also how late a stop is noticed."""
PAUSE_S = 0.5
"""Between two tries while Postgres or Redis is away."""


class Settler:
    """Reads the settlements of all pools, rates them, charges them in batches, and tells who waits."""

    def __init__(
        self,
        *,
        queues: SettlerSide,
        settlement: Settlement,
        snapshot: Callable[[], Snapshot],
        refresh: Callable[[], Awaitable[None]],
        is_away: Callable[[BaseException], bool],
        batch: int,
    ) -> None:
        self._queues = queues
        self._settlement = settlement
        self._snapshot = snapshot
        self._refresh = refresh
        self._is_away = is_away
        self._batch = batch
        self.settled_count = 0

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
        entries = await self._queues.settlements(list(self._snapshot().pools), self._batch, wait_s=wait_s)
        if not entries:
            return 0
        ended = [end for _, entry in entries for end in entry.ended]
        news: list[tuple[str, Frame]] = []
        for start in range(0, len(ended), self._batch):
            news += await self._charge(ended[start : start + self._batch])
        done = [(pool, entry.entry) for pool, entry in entries]
        await asyncio.gather(self._queues.announce(news), self._queues.settled(done))  # both leave in one write
        return len(ended)

    async def settle(self, ended: Sequence[Ended]) -> None:
        """Charge ended requests and announce it. Raises while Postgres is away; repeating it charges nothing twice."""
        await self._queues.announce(await self._charge(ended))

    async def _charge(self, ended: Sequence[Ended]) -> list[tuple[str, Frame]]:
        """Charge ended requests, and give what is to be announced of it."""
        if any(end.price not in self._snapshot().prices for end in ended):
            await self._refresh()
        by_id = {end.id: end for end in ended}
        charged = await self._settlement.settle([self._rated(end, end.price) for end in by_id.values()])
        disputed = [row for row in charged if row.mismatch]
        if disputed:
            agreed = [row for row in charged if not row.mismatch]
            log.error("settle.price_mismatch", requests=[row.id for row in disputed])
            charged = agreed + await self._settlement.settle(
                [self._rated(by_id[row.id], row.price_version_id) for row in disputed]
            )
        self._log([(by_id[row.id], row) for row in charged if row.first])
        return [_news(by_id[row.id], row) for row in charged if by_id[row.id].reply]

    def _rated(self, end: Ended, price_id: int) -> Ending:
        snapshot = self._snapshot()
        price = snapshot.prices[price_id]  # never zero for want of a price: a KeyError leaves the event in the stream
        policy = snapshot.policies.get(price.model_id, OutcomePolicy())
        return Ending(
            id=end.id,
            charge_nanos=charge_nanos(price, end.units, end.outcome, policy, end.forward_began),
            price_version_id=price_id,
            outcome=end.outcome,
            reason=end.reason,
            attempt=end.attempt,
            worker=end.worker,
            units=end.units,
            phases=end.phases,
            forward_began=end.forward_began,
            output=encode_output(end.output) if end.output is not None else None,
            detail=end.detail,
        )

    def _log(self, rows: list[tuple[Ended, Charged]]) -> None:
        """Write one line for each request that was charged now."""
        self.settled_count += len(rows)
        log_requests([
            {
                "request_id": end.id,
                "outcome": end.outcome,
                "reason": end.reason,
                "attempt": end.attempt,
                "worker": end.worker,
                "charge_nanos": row.charge_nanos,
                "price_version": end.price,
                "phases_us": {name: spent for name in PHASE_NAMES if (spent := getattr(end.phases, name + "_us"))},
                "units": {name: count for name in UNIT_NAMES if (count := getattr(end.units, name))},
            }
            for end, row in rows
        ])  # fmt: skip


def _news(end: Ended, row: Charged) -> tuple[str, Frame]:
    settled = Settled(
        row.id, row.outcome, row.reason, row.charge_nanos, row.hold_nanos, row.units, row.phases, row.attempt
    )
    return end.reply, Frame(row.id, row.attempt, -1, settled)
