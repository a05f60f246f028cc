"""What stands in an entry of a settlements stream."""

import time
from collections.abc import Iterable

import msgspec

from gateway.contract.events import Ended, decode_ended
from gateway.contract.phases import Phases
from gateway.contract.request import Request, decode_request
from gateway.contract.units import Units
from gateway.queues.moves import carrying, lost_attempt, next_leg
from gateway.queues.port import Move


class Entry(msgspec.Struct, frozen=True):
    """An entry: terminal events as workers wrote them, one request that no worker ended, or one that goes on."""

    ended: list[Ended]
    lost: Request | None = None
    """The request that was given up and has ended."""
    move: Move | None = None
    """The request that goes on in another pool."""


class _Named(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The head of an Ended."""

    id: str
    attempt: int


ENDED_WAITING = 10**9
"""Stands for the attempt of a request that was stopped before a worker took it."""

_NAMES = msgspec.msgpack.Decoder(list[_Named])


def read_entry(fields: list[bytes], pool: str) -> Entry:
    """Read an entry of a pool. Raises msgspec.MsgspecError.

    Its fields: `ended`, or `lost`, `attempt`, `cancel` (sweep.lua), or `moved`, `attempt`, `pool` (hand_over.lua).
    """
    if fields[0] == b"ended":
        return Entry(decode_ended(fields[1]))
    request, attempt = decode_request(fields[1]), int(fields[3])
    if fields[0] == b"moved":
        return Entry([], move=Move(request, fields[5].decode(), attempt))
    if fields[5]:
        return Entry([carrying(end, request, pool) for end in decode_ended(fields[5])], request)
    if request.legs:
        on = next_leg(request, [lost_attempt(request, pool, attempt)], time.time_ns() // 1000)
        return Entry([], move=Move(on, request.legs[0].pool, attempt, lost=True))
    return Entry([carrying(given_up(request, attempt), request, pool)], request)


def attempts_in(fields: list[bytes]) -> list[tuple[str, int]]:
    """Read only the request ids of an entry, each with its attempt: beyond all others where it ended in the queue."""
    if fields[0] == b"ended":
        return [(named.id, named.attempt or ENDED_WAITING) for named in _NAMES.decode(fields[1])]
    return [(decode_request(fields[1]).id, int(fields[3]))]


def latest_in(entries: Iterable[list[bytes]]) -> dict[str, int]:
    """Read the request ids in entries, each with its latest attempt."""
    found: dict[str, int] = {}
    for fields in entries:
        for request_id, attempt in attempts_in(fields):
            found[request_id] = max(attempt, found.get(request_id, 0))
    return found


def given_up(request: Request, attempt: int) -> Ended:
    """Make the end of a request that was taken as often as allowed, and that no worker finished."""
    return Ended(
        request.id,
        attempt,
        "failed",
        "worker_lost",
        Units(),
        Phases(),
        request.price,
        reply=request.reply,
        detail="The workers that took this request were lost before they finished it.",
        parent=request.parent,
    )
