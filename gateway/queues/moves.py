"""Requests that go on in another pool, and the word that stays of them in the pool they have left.

Where a request went stands in its place among the jobs of its old pool, so that it is not put in there again, and who
looks for it finds it. What it is in its new pool goes through the settlements of the old one: the step that takes its
lease away is the step that sends it on, and nothing but the settler that reads it puts it into the other queue.
"""

import re

import msgspec

from gateway.contract.events import Ended, Step
from gateway.contract.phases import Phases
from gateway.contract.request import Request
from gateway.contract.units import Units
from gateway.queues.port import Move

MOST_KEPT_MS = 8 * 86_400_000
"""Longer than any deadline: how long the word of a request without one is kept."""

_WORD = re.compile(rb"m(\d{1,9}) ([01]) (.+)", re.DOTALL)
"""No payload and no event begins like this: both are arrays of msgpack."""


class Moved(msgspec.Struct, frozen=True):
    """Where a request went on, after which attempt, and whether its events are kept."""

    pool: str
    attempt: int
    keep: bool


def pack_moved(moved: Moved) -> bytes:
    """Write the word as the scripts read it: `m`, the attempt, 1 where events are kept, the pool."""
    return f"m{moved.attempt} {int(moved.keep)} {moved.pool}".encode()


def read_moved(value: bytes | None) -> Moved | None:
    """Read what lies in a job's place, or in an event's; None where it is no such word."""
    if not value or value[:1] != b"m":
        return None
    found = _WORD.fullmatch(value)
    return Moved(found[3].decode(), int(found[1]), found[2] == b"1") if found else None


def next_leg(request: Request, tried: list[Step], now_us: int) -> Request:
    """Make what a request is in the next of its legs; `tried` is what the attempt before came to."""
    leg, *legs = request.legs
    return msgspec.structs.replace(
        request,
        model=leg.model,
        input=leg.input or request.input,
        price=leg.price,
        only=leg.only,
        legs=legs,
        steps=[*request.steps, *tried],
        enqueued_us=now_us,
    )


def lost_attempt(request: Request, pool: str, attempt: int) -> Step:
    """Make the record of an attempt whose worker was lost, the last that its pool allowed."""
    return Step("", request.model, "", pool, "", attempt, "failed", "worker_lost", Units(), Phases())


def carrying(ended: Ended, request: Request, pool: str) -> Ended:
    """Give an end what the request's attempts in other pools came to, and the pool where it ended."""
    return msgspec.structs.replace(ended, steps=[*request.steps, *ended.steps], pool=pool) if request.steps else ended


def word_of(move: Move) -> bytes:
    """Write the word that a request which goes on elsewhere leaves behind."""
    return pack_moved(Moved(move.pool, move.attempt, move.request.keep))
