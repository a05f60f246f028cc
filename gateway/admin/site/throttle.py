"""Slows whoever tries keys at the sign-in: a few tries at once, then one every few seconds; bounded in all, too.

All gateways count together, in Redis, so that neither another gateway nor a restart begins the count anew. Each counts
for itself as well, which is what holds while Redis is away.
"""

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import structlog

from gateway.errors import TooManyRequests
from gateway.queues.port import QueueUnavailable
from gateway.queues.tries import Pace

log = structlog.get_logger()

BURST = 5
EVERY_S = 6.0
BURST_IN_ALL = 60
EVERY_S_IN_ALL = 0.5
PACE = Pace(burst=BURST, every_s=EVERY_S, burst_in_all=BURST_IN_ALL, every_s_in_all=EVERY_S_IN_ALL)
MOST_ADDRESSES = 10_000
ANSWER_S = 1.0
"""How long a sign-in waits for Redis before this process' own count is all there is."""
_ONE_HOME = 64
"""Of IPv6, whoever has one address has all that share these bits."""


class Shared(Protocol):
    """Who counts for all gateways."""

    async def take(self, who: str) -> float:
        """Count a try; answers the seconds to wait where there were too many. Raises QueueUnavailable."""
        ...

    async def give_back(self, who: str) -> None:
        """Give a try back. Raises QueueUnavailable."""
        ...


class Throttle:
    """Counts tries by who makes them and in all, here and, where there is somebody who does, for all gateways."""

    def __init__(self, shared: Shared | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._own = OwnCount(clock)

    async def take(self, address: str) -> None:
        """Count one try. Raises TooManyRequests with the time to wait."""
        who = home_of(address)
        wait_s = self._own.take(who)
        if wait_s <= 0:
            wait_s = await self._ask(who)
            if wait_s > 0:
                self._own.give_back(who)
        if wait_s > 0:
            raise TooManyRequests(f"Too many tries: wait {wait_s:.0f} s.", code="sign_in_slowed", retry_after_s=wait_s)

    async def forgive(self, address: str) -> None:
        """Give the last try back: it was right."""
        who = home_of(address)
        self._own.give_back(who)
        if self._shared is not None:
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._shared.give_back(who)
            except (QueueUnavailable, TimeoutError) as error:
                log.warning("sign_in.own_count", error=type(error).__name__)

    async def _ask(self, who: str) -> float:
        if self._shared is None:
            return 0.0
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._shared.take(who)
        except (QueueUnavailable, TimeoutError) as error:
            log.warning("sign_in.own_count", error=type(error).__name__)
            return 0.0


class OwnCount:
    """The count of this process alone: two leaky buckets."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()
        self._until_in_all = 0.0

    def take(self, who: str) -> float:
        """Count one try; answers the seconds to wait where there were too many, and counts none then."""
        now = self._clock()
        mine = max(self._until.get(who, 0.0), now)
        wait = max(mine - now - (BURST - 1) * EVERY_S, self._until_in_all - now - (BURST_IN_ALL - 1) * EVERY_S_IN_ALL)
        if wait > 0:
            return wait
        self._until[who] = mine + EVERY_S
        self._until.move_to_end(who)
        self._until_in_all = max(self._until_in_all, now) + EVERY_S_IN_ALL
        while len(self._until) > MOST_ADDRESSES:
            self._until.popitem(last=False)
        return 0.0

    def give_back(self, who: str) -> None:
        """Give the last try back."""
        if who in self._until:
            self._until[who] -= EVERY_S
        self._until_in_all -= EVERY_S_IN_ALL


def home_of(address: str) -> str:
    """Give who stands behind an address: itself, and of IPv6 the network that one home or machine has.

    What is no address, as a proxy may pass it on, is all one.
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if known.version == 4:
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, _ONE_HOME), strict=False))
