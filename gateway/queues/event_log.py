"""Reading the event log of a kept request, from any place in it, and on as it grows."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from gateway.contract.events import Ended, Event, decode_event
from gateway.queues.moves import Moved, read_moved
from gateway.queues.order import Order
from gateway.queues.port import EventsLost

MOST_ENTRIES = 10_000
"""Events kept of one request, about; who comes later than that reads the output instead."""
KEEP_S = 3600
"""Seconds a log is kept after its last event."""
PAGE = 500

Entry = tuple[str, int, bytes]
"""An entry's id (`attempt-n`), its sequence number, and the packed event, or the word of where its request went on."""


class Log(Protocol):
    """The event log of one request in one pool."""

    channel: bytes
    """Tells of new entries."""

    async def page(self, start: str) -> Sequence[Entry]:
        """Read up to PAGE entries from the id `start` on, from the first where that is empty."""
        ...

    async def last(self) -> Entry | None:
        """Read the last entry; None where nothing is kept."""
        ...

    async def moved(self) -> Moved | None:
        """Say where the request went on; None where it is in this pool, or in none."""
        ...


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
        self.start = after
        """Where to read from."""
        self.moved: Moved | None = None
        """Where the request went on, after what was read."""
        self.ended = False
        self._order: Order | None = None if after else Order()

    def read(self, entries: Sequence[Entry]) -> list[tuple[str, Event]]:
        """Take the entries from `position` on, that one included. Raises EventsLost where some are missing."""
        new: list[tuple[str, Event]] = []
        for at, (entry, seq, packed) in enumerate(entries):
            self.moved = read_moved(packed)
            if self.moved is not None:
                break
            event = decode_event(packed)
            attempt = int(entry.partition("-")[0])
            last = isinstance(event, Ended)
            if entry == self.position:
                self._order = self._order or Order(attempt, seq + 1 if seq >= 0 else None)
            elif at == 0 and not self._may_follow(entry):
                raise EventsLost("events were dropped")
            else:
                self.position = self.start = entry
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

    def go_on(self, moved: Moved) -> None:
        """Turn to the log of the pool where the request went on: it begins with a later attempt."""
        self.position, self.start, self.moved = "", f"{moved.attempt + 1}-0", None

    def _may_follow(self, entry: str) -> bool:
        """Say whether a page may begin with this entry: the first of a later attempt than that read last."""
        attempt, _, number = entry.partition("-")
        return number == "0" and (not self.position or int(attempt) > int(self.position.partition("-")[0]))


async def follow(
    log_in: Callable[[str], Log], channels: Channels, pool: str, after: str
) -> AsyncIterator[tuple[str, Event]]:
    """Yield events after the entry `after` and on as they come, to `Ended`, in whichever pool the request goes on.

    `log_in` gives its log in a pool; `pool` is where it was put in first.
    """
    reader = LogReader(after)
    log = log_in(pool)
    if after:
        read_attempt = int(after.partition("-")[0])
        while (moved := await log.moved()) is not None and moved.attempt < read_attempt:
            log = log_in(moved.pool)
    while True:
        async with aclosing(_follow_one(log, reader, channels)) as items:
            async for item in items:
                yield item
        if reader.moved is None:
            return
        log = log_in(reader.moved.pool)
        reader.go_on(reader.moved)


async def _follow_one(log: Log, reader: LogReader, channels: Channels) -> AsyncGenerator[tuple[str, Event]]:
    """Follow the log of one pool, until the request has ended or has gone on elsewhere."""
    news = asyncio.Event()

    def heard(_: bytes) -> None:
        news.set()

    await channels.subscribe(log.channel, heard, news.set)
    try:
        while not (reader.ended or reader.moved):
            news.clear()
            page = await log.page(reader.start)
            for item in reader.read(page):
                yield item
            if len(page) < PAGE and not (reader.ended or reader.moved):
                await news.wait()
    finally:
        await channels.unsubscribe(log.channel, heard)


async def latest(log_in: Callable[[str], Log], pool: str) -> Event | None:
    """Give the latest kept event of a request in whichever pool it went on; None where nothing is kept of it."""
    after = 0
    while (entry := await log_in(pool).last()) is not None and int(entry[0].partition("-")[0]) > after:
        moved = read_moved(entry[2])
        if moved is None:
            return decode_event(entry[2])
        pool, after = moved.pool, moved.attempt
    return None
