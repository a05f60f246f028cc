"""Tries to sign in, counted for all gateways together. By Redis' clock, and gone by themselves."""

from hashlib import sha256

import msgspec

from gateway.queues.scripts import script
from gateway.queues.wire import Wire

_HEAD = b"fg:{tries}:"
_MICRO = 1_000_000


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often somebody may try: so many at once, then one in so many seconds; and all together."""

    burst: int
    every_s: float
    burst_in_all: int
    every_s_in_all: float


class RedisTries:
    """Two leaky buckets, of who tries and of all. What stands for who is a hash: no address lies in Redis."""

    def __init__(self, wire: Wire, pace: Pace) -> None:
        self._wire = wire
        self._pace = (
            pace.burst,
            round(pace.every_s * _MICRO),
            pace.burst_in_all,
            round(pace.every_s_in_all * _MICRO),
        )

    async def take(self, who: str) -> float:
        """Count a try; answers the seconds to wait where there were too many. Raises QueueUnavailable."""
        return int(await self._run(who, "take")) / _MICRO

    async def give_back(self, who: str) -> None:
        """Give a try back: it was right. Raises QueueUnavailable."""
        await self._run(who, "give")

    async def _run(self, who: str, what: str) -> int:
        mine = _HEAD + sha256(who.encode("utf-8", "replace")).hexdigest()[:32].encode()
        return int(await self._wire.run(script("try"), (mine, _HEAD + b"all"), what, *self._pace))
