"""Runs that another gateway started: found in Postgres, and followed by the events that are kept of them.

A run is a request whose output, events and notes are kept, so whichever gateway a browser meets next can show it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.events import Ended, TextDelta
from gateway.errors import NotFound, Unavailable
from gateway.flow.call import NOTE_PREFIX, Call
from gateway.flow.way import Way
from gateway.ledger.open_requests import OpenRequests, Record
from gateway.queues.port import EventsLost, QueueUnavailable
from gateway.reports.request_story import read_story

PLAY_NOTE = "playground"
"""The note by which a request is known as a run."""
MOST_SHOWN = 8_000
"""A call whose text is longer is not written out in other gateways."""
LOOK_S = 0.2
PATIENCE_S = 120.0
"""How long past its deadline a request is waited for."""
LAST_EVENTS_S = 2.0


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """What is noted with a run, beside what any request has."""

    most_nanos: int
    shown: dict[str, Any] | None = None
    """Its input as it is written out in snippets; None where that is long."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A run as Postgres has it."""

    model: str
    record: Record
    sketch: Sketch


def noted(call: Call, most_nanos: int, shown: Mapping[str, Any]) -> Call:
    """Give a call with the note that makes a run of it."""
    sketch = msgspec.json.encode(Sketch(most_nanos=most_nanos, shown=dict(shown)))
    if len(sketch) > MOST_SHOWN:
        sketch = msgspec.json.encode(Sketch(most_nanos=most_nanos))
    return msgspec.structs.replace(call, notes={**call.notes, PLAY_NOTE: sketch.decode()})


class Elsewhere:
    """Finds and follows runs."""

    def __init__(self, engine: AsyncEngine, way: Way) -> None:
        self._engine = engine
        self._way = way
        self._requests = OpenRequests(engine)

    async def find(self, run_id: str) -> Found:
        """Find a run. Raises NotFound for a request that is none, or that is no longer kept."""
        story = await read_story(self._engine, run_id)
        record = await self._requests.record(story.account_id, run_id)
        note = ((record and record.metadata) or {}).get(NOTE_PREFIX + PLAY_NOTE)
        if record is None or note is None:
            raise NotFound("This is no run that is remembered; the request itself may be.")
        return Found(model=story.model, record=record, sketch=msgspec.json.decode(note, type=Sketch))

    async def follow(self, record: Record, heard: Callable[[TextDelta, int], None]) -> Record:
        """Tell of text as it comes, with its attempt; answers the request as it was settled. Raises Unavailable."""
        following = asyncio.create_task(self._listen(record, heard))
        try:
            settled = await self._settled(record)
            await asyncio.wait({following}, timeout=LAST_EVENTS_S)
            return settled
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _listen(self, record: Record, heard: Callable[[TextDelta, int], None]) -> None:
        try:
            async for entry, event in self._way.queue(record.pool).events(record.id, ""):
                if isinstance(event, TextDelta):
                    heard(event, int(entry.partition("-")[0]))
                elif isinstance(event, Ended):
                    return
        except (EventsLost, QueueUnavailable):
            return  # its output is shown when it is settled

    async def _settled(self, record: Record) -> Record:
        until = (record.deadline_us or 0) / 1e6 + PATIENCE_S
        while time.time() < until:
            try:
                found = await self._requests.record(record.account_id, record.id)
                if found is not None and found.finished_us is not None:
                    return found
            except Unavailable:
                await asyncio.sleep(LOOK_S)
            await asyncio.sleep(LOOK_S)
        raise Unavailable("Nobody says how this run has ended; its request is kept.")
