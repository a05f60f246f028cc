"""What stands in an entry of a settlements stream."""

import msgspec

from gateway.contract.events import Ended, decode_ended
from gateway.contract.phases import Phases
from gateway.contract.request import Request, decode_request
from gateway.contract.units import Units


class Entry(msgspec.Struct, frozen=True):
    """An entry: terminal events as workers wrote them, or one request that no worker ended."""

    ended: list[Ended]
    lost: Request | None = None
    """The request that was given up."""


class _Named(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The head of an Ended."""

    id: str


_NAMES = msgspec.msgpack.Decoder(list[_Named])


def read_entry(fields: list[bytes]) -> Entry:
    """Read an entry's fields: `ended`, or `lost`, `attempt`, `cancel` (sweep.lua). Raises msgspec.MsgspecError."""
    if fields[0] == b"ended":
        return Entry(decode_ended(fields[1]))
    request = decode_request(fields[1])
    if fields[5]:
        return Entry(decode_ended(fields[5]), request)
    return Entry([given_up(request, int(fields[3]))], request)


def ids_in(fields: list[bytes]) -> list[str]:
    """Read only the request ids of an entry."""
    if fields[0] == b"ended":
        return [named.id for named in _NAMES.decode(fields[1])]
    return [decode_request(fields[1]).id]


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
    )
