"""Reading the event log of a kept request, from any place in it, and on as it grows."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from gateway.contract.events import Ended, Event, decode_event
from gateway.queues.order import Order
from gateway.queues.port import EventsLost

MOST_ENTRIES = 10_000
"""Events kept of one request, about; who comes later than that reads the output instead."""
KEEP_S = 3600
"""Seconds a log is kept after its last event."""
PAGE = 500

Entry = tuple[str, int, bytes]
"""An entry's id (`attempt-n`), its sequence number, and the packed event."""


class Channels(Protocol):
    """Channels that carry messages while they are listened to."""

    async def subscribe(self, channel: bytes, on_message: Callable[[bytes], None], on_gap: Callable[[], None]) -> None:
        """Listen; `on_gap` is told when messages may have been missed. Raises QueueUnavailable."""
        ...

    async def unsubscribe(self, channel: bytes, on_message: Callable[[bytes], None]) -> None:
        """Listen no more."""
        ...


class LogReader:
    """Checks that what it reads continues what was read before."""

    def __init__(self, after: str) -> None:
        if after and not re.fullmatch(r"[0-9]{1,9}-[0-9]{1,18}", after):
            raise EventsLost("not the id of an event")
        self.position = after
        self.ended = False
        self._order: Order | None = None if after else Order()

    def read(self, entries: Sequence[Entry]) -> list[tuple[str, Event]]:
        """Take the entries from `position` on, that one included. Raises EventsLost where some are missing."""
        new: list[tuple[str, Event]] = []
        for at, (entry, seq, packed) in enumerate(entries):
            event = decode_event(packed)
            attempt = int(entry.partition("-")[0])
            last = isinstance(event, Ended)
            if entry == self.position:
                self._order = self._order or Order(attempt, seq + 1 if seq >= 0 else None)
            elif at == 0 and not self._may_follow(entry):
                raise EventsLost("events were dropped")
            else:
                self.position = entry
                self._order = self._order or Order()
                verdict = self._order.judge(attempt, seq, last=last)
                if verdict == "gap":
                    raise EventsLost("events are missing")
                if verdict != "stale":
                    new.append((entry, event))
            if last:
                self.ended = True
                break
        if not entries and self.position:
            raise EventsLost("the log is gone")
        return new

    def _may_follow(self, entry: str) -> bool:
        """Say whether a page may begin with this entry: the first of a later attempt than that read last."""
        attempt, _, number = entry.partition("-")
        return number == "0" and (not self.position or int(attempt) > int(self.position.partition("-")[0]))


async def follow(
    read: Callable[[str], Awaitable[Sequence[Entry]]], channels: Channels, channel: bytes, after: str
) -> AsyncIterator[tuple[str, Event]]:
    """Yield events after the entry `after` and on as they come, to `Ended`. `read` gives a page from an entry on."""
    reader = LogReader(after)
    news = asyncio.Event()

    def heard(_: bytes) -> None:
        news.set()

    await channels.subscribe(channel, heard, news.set)
    try:
        while not reader.ended:
            news.clear()
            page = await read(reader.position)
            for item in reader.read(page):
                yield item
            if len(page) < PAGE and not reader.ended:
                await news.wait()
    finally:
        await channels.unsubscribe(channel, heard)
