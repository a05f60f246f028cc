"""In the settler: keeps how fast each pool serves, and tells the gateways once a second."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended
from gateway.queues.histories import Histories
from gateway.queues.port import QueueUnavailable
from gateway.routing.pace import Paces

TELL_S = 1.0


class Chronicle:
    """Hears of every end that this settler settles."""

    def __init__(self, histories: Histories, snapshot: Callable[[], Snapshot]) -> None:
        self._histories = histories
        self._snapshot = snapshot
        self._paces = Paces()

    def ended(self, pool: str, ends: Sequence[Ended]) -> None:
        """Note ends that came out of a pool, those of workflows' steps too: they all took a place there."""
        snapshot = self._snapshot()
        for end in ends:
            price = snapshot.prices.get(end.price)
            model = snapshot.model_names.get(price.model_id, "") if price is not None else ""
            self._paces.ended(end.pool or pool, model, end)

    async def tell(self) -> None:
        """Tell what has changed. While Redis is away, the next second's word stands for both."""
        told = self._paces.histories()
        if told:
            with contextlib.suppress(QueueUnavailable):
                await self._histories.publish(told)

    async def run(self, stopping: asyncio.Event) -> None:
        """Tell once a second until told to stop."""
        while not stopping.is_set():
            await self.tell()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), TELL_S)
