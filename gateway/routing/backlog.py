"""How full the queues are, and what that means for whoever comes next."""

import time
from dataclasses import dataclass

from gateway.catalog.model import Pool
from gateway.errors import TooManyRequests

RETRY_AFTER_MOST_S = 60.0
_SMOOTHING = 0.3


@dataclass(slots=True)
class _Level:
    waiting: int = 0
    ended: int = 0
    ended_before: int = 0
    sampled_s: float = 0.0
    rate: float = 0.0


class Backlog:
    """The depth of each pool's queue, as enqueues and a sampler report it, and how fast it drains."""

    def __init__(self) -> None:
        self._levels: dict[str, _Level] = {}

    def _level(self, pool: str) -> _Level:
        level = self._levels.get(pool)
        if level is None:
            level = self._levels[pool] = _Level()
        return level

    def admit(self, pool: Pool) -> None:
        """Let one more request come.

        Raises TooManyRequests, with the time to try again, when the pool's backlog is full.
        """
        if self.full(pool):
            raise self.refusal(pool)

    def full(self, pool: Pool) -> bool:
        """Say whether no more requests may wait in a pool."""
        level = self._levels.get(pool.name)
        return level is not None and level.waiting >= pool.backlog

    def waiting(self, pool: str) -> int:
        """Give the depth of a pool's queue as it was last heard."""
        return self._level(pool).waiting

    def refusal(self, pool: Pool) -> TooManyRequests:
        """Make the error of a pool that is full, with the time to try again."""
        level = self._level(pool.name)
        return TooManyRequests(
            f"{level.waiting} requests wait for this model, and no more may. Try again later.",
            code="queue_full",
            retry_after_s=self._retry_after_s(level, level.waiting - pool.backlog + 1),
        )

    def enqueued(self, pool: str, waiting: int) -> None:
        """Note the depth that an enqueue answered."""
        self._level(pool).waiting = waiting

    def ended(self, pool: str) -> None:
        """Note that a request of the pool has ended."""
        self._level(pool).ended += 1

    def sampled(self, pool: str, waiting: int) -> None:
        """Note a sample of the depth, and smooth the rate of ends since the last one."""
        level, now_s = self._level(pool), time.monotonic()
        if level.sampled_s:
            rate = (level.ended - level.ended_before) / max(now_s - level.sampled_s, 1e-3)
            level.rate += _SMOOTHING * (rate - level.rate)
        level.waiting, level.ended_before, level.sampled_s = waiting, level.ended, now_s

    @staticmethod
    def _retry_after_s(level: _Level, excess: int) -> float:
        if level.rate <= 0.01:
            return RETRY_AFTER_MOST_S / 10
        return min(max(1.0, excess / level.rate), RETRY_AFTER_MOST_S)
