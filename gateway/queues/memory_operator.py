"""The operators' side of the queue's twin in memory."""

from gateway.queues.memory_pool import MemoryPool
from gateway.queues.operators import Look, Seen


class MemoryOperator:
    """The queue of one pool, as operators use it (operators.OperatorSide)."""

    def __init__(self, state: MemoryPool) -> None:
        self._state = state

    async def look(self, most: int) -> Look:
        """Do what look.lua does."""
        state = self._state
        now_us = state.now_us()
        return Look(
            waiting=len(state.queue),
            leased=len(state.leases),
            settling=len(state.stream),
            entered=state.entered,
            head=[request_id for _, request_id in state.queue[:most]],
            paused="" in state.orders,
            drained=frozenset(state.orders.keys() - {""}),
            workers=[Seen(status, (now_us - seen_us) // 1000) for seen_us, status in state.workers.values()],
        )

    async def pause(self, *, on: bool) -> bool:
        """Let nobody take from the pool, or everybody again. Answers whether that is new."""
        return self._order("", on)

    async def drain(self, worker: str, *, on: bool) -> bool | None:
        """Tell a worker to take no more, or to go on. Answers whether that is new; None where there is no such one."""
        if not worker or (on and worker not in self._state.workers):
            return None
        return self._order(worker, on)

    def _order(self, whom: str, on: bool) -> bool:
        """Do what order.lua does."""
        state, new = self._state, on is (whom not in self._state.orders)
        if on:
            state.orders.setdefault(whom, "drain" if whom else "pause")
        else:
            state.orders.pop(whom, None)
            state.news.set()
        return new
