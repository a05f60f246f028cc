"""Which gateway has which revision of the catalog: how an operator sees that a price has arrived everywhere."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

import msgspec

from gateway.queues.port import QueueUnavailable
from gateway.queues.scripts import script
from gateway.queues.wire import Wire

KEY = b"fg:revisions"
SILENT_S = 6.0
"""A gateway that has said nothing for so long is not counted."""
REPEAT_S = 2.0
"""How often a gateway says again what it has."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GatewayRevision(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway has."""

    gateway: str
    revision: int
    since: datetime
    seen: datetime


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """How far a revision has come."""

    gateways: int
    """Those that live."""
    having: int
    """Those of them that have it, or a later one."""
    last_at: datetime | None
    """When the last of them got it; None while one has not."""

    def text(self, since: datetime) -> str:
        """Write it for people: `3 of 3 gateways have it, 0.4 s`."""
        said = f"{self.having} of {self.gateways} gateways have it"
        if self.last_at is None:
            return said
        return f"{said}, {max((self.last_at - since).total_seconds(), 0):.1f} s"


@runtime_checkable
class Revisions(Protocol):
    """What both twins do."""

    async def report(self, gateway: str, revision: int) -> None:
        """Say which revision a gateway has. Nothing depends on it: where it cannot be said, it is not."""
        ...

    async def read(self) -> list[GatewayRevision]:
        """Tell what the gateways that live have. Raises QueueUnavailable."""
        ...


async def gateways_at(revisions: Revisions, revision: int) -> Arrival:
    """Say how many gateways have a revision. Raises QueueUnavailable."""
    living = await revisions.read()
    having = [each for each in living if each.revision >= revision]
    there = bool(living) and len(having) == len(living)
    return Arrival(
        gateways=len(living), having=len(having), last_at=max(each.since for each in having) if there else None
    )


class RedisRevisions:
    """One hash for all gateways."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def report(self, gateway: str, revision: int) -> None:
        """Say which revision a gateway has, where Redis is there."""
        with contextlib.suppress(QueueUnavailable):
            await self._wire.run(script("revision"), (KEY,), gateway, revision)

    async def read(self) -> list[GatewayRevision]:
        """Tell what the gateways that live have. Raises QueueUnavailable."""
        found = await self._wire.call("HGETALL", KEY)
        pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
        told = [_told(name.decode(), value.decode()) for name, value in pairs]
        newest = max((each.seen for each in told), default=_EPOCH)
        return [each for each in told if each.seen >= newest - timedelta(seconds=SILENT_S)]


class MemoryRevisions:
    """The twin in memory."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._told: dict[str, GatewayRevision] = {}

    async def report(self, gateway: str, revision: int) -> None:
        """Say which revision a gateway has."""
        now, known = self._now(), self._told.get(gateway)
        since = known.since if known is not None and known.revision == revision else now
        self._told[gateway] = GatewayRevision(gateway=gateway, revision=revision, since=since, seen=now)

    async def read(self) -> list[GatewayRevision]:
        """Tell what the gateways that live have."""
        newest = max((each.seen for each in self._told.values()), default=_EPOCH)
        return [each for each in self._told.values() if each.seen >= newest - timedelta(seconds=SILENT_S)]


def _told(gateway: str, value: str) -> GatewayRevision:
    revision, since, seen = (int(each) for each in value.split())
    return GatewayRevision(
        gateway=gateway,
        revision=revision,
        since=_EPOCH + timedelta(milliseconds=since),
        seen=_EPOCH + timedelta(milliseconds=seen),
    )
