"""One receiver's trouble is nobody else's: few calls at a time to each, and none for a while to one that fails."""

from collections.abc import Callable, Sequence

MOST_AT_ONCE = 4
"""Events leased of one receiver at a time; no more are taken while as many are under way."""
FAILURES = 4
"""Failures in a row after which a receiver is left alone."""
PAUSE_S = 10.0
LONGEST_PAUSE_S = 300.0
FORGET_S = 900.0
"""A receiver that nothing was sent to for so long is forgotten."""


class _Host:
    __slots__ = ("failures", "last_s", "open_until_s", "under_way")

    def __init__(self) -> None:
        self.under_way = 0
        self.failures = 0
        self.open_until_s = 0.0
        self.last_s = 0.0


class Hosts:
    """What a sender knows of its receivers. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._hosts: dict[str, _Host] = {}

    @property
    def under_way(self) -> int:
        """How many calls are under way, to all of them."""
        return sum(host.under_way for host in self._hosts.values())

    def busy(self) -> Sequence[str]:
        """Name the receivers that get nothing more for now. One that failed is tried by what comes after its pause."""
        now_s = self._clock()
        self._forget(now_s)
        return [
            name
            for name, host in self._hosts.items()
            if host.under_way >= (1 if host.failures >= FAILURES else MOST_AT_ONCE) or host.open_until_s > now_s
        ]

    def began(self, name: str) -> None:
        """Note that a call begins."""
        host = self._hosts.setdefault(name, _Host())
        host.under_way += 1
        host.last_s = self._clock()

    def ended(self, name: str, *, well: bool) -> None:
        """Note how a call ended; after some failures in a row the receiver gets a pause that doubles each time."""
        host = self._hosts[name]
        host.under_way -= 1
        host.failures = 0 if well else host.failures + 1
        if well:
            host.open_until_s = 0.0
        elif host.failures >= FAILURES:
            pause_s = min(PAUSE_S * 2 ** min(host.failures - FAILURES, 10), LONGEST_PAUSE_S)
            host.open_until_s = self._clock() + pause_s

    def _forget(self, now_s: float) -> None:
        gone = [name for name, host in self._hosts.items() if not host.under_way and now_s - host.last_s > FORGET_S]
        for name in gone:
            del self._hosts[name]
