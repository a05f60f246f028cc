"""What a worker holds under lease, and how much of it it has told."""

from collections.abc import Iterable, Sequence

import msgspec

from gateway.contract.events import Ended, Frame
from gateway.contract.request import Request
from gateway.contract.states import REASONS
from gateway.queues.port import Cancel, Taken


def read_cancel(message: bytes) -> Cancel:
    """Read a message of a pool's control channel: an id, a space, the reason."""
    request_id, _, reason = message.decode().partition(" ")
    return Cancel(request_id, reason if reason in REASONS else "cancelled_by_caller")


class Holding(msgspec.Struct):
    """A request under lease, its attempt, and how many deltas of it went to its reply channel and to its event log."""

    request: Request
    attempt: int
    deltas: int = 0
    logged: int = 0


class Held:
    """The leases of one worker, by request id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Holding] = {}

    def add(self, taken: Iterable[Taken]) -> None:
        """Note what was taken."""
        for one in taken:
            self._by_id[one.request.id] = Holding(one.request, one.attempt)

    def drop(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Forget attempts `(id, attempt)` that are not held any more; a later one of the same request stays."""
        for request_id, attempt in pairs:
            holding = self._by_id.get(request_id)
            if holding is not None and holding.attempt == attempt:
                del self._by_id[request_id]

    def __contains__(self, request_id: str) -> bool:
        """Say whether a request is held."""
        return request_id in self._by_id

    def attempts(self, request_ids: Iterable[str]) -> list[tuple[str, int]]:
        """Pair those ids that are held with their attempts."""
        by_id = self._by_id
        return [(request_id, by_id[request_id].attempt) for request_id in request_ids if request_id in by_id]

    def current(self, frames: Iterable[tuple[Request, Frame]]) -> list[tuple[Request, Frame]]:
        """Pass only frames of attempts that are held: one that lost its lease is not heard any more.

        The request beside a frame says where that frame goes, so it may keep less than the request under lease.
        """
        passed = []
        for pair in frames:
            frame = pair[1]
            holding = self._by_id.get(frame.id)
            if holding is not None and holding.attempt == frame.attempt:
                if frame.seq >= holding.deltas:
                    holding.deltas = frame.seq + 1
                if pair[0].keep and frame.seq >= holding.logged:
                    holding.logged = frame.seq + 1
                passed.append(pair)
        return passed

    def closing(self, ended: Sequence[Ended]) -> "Closing":
        """Lay out what goes where when these requests end."""
        stream: list[Ended] = []
        frames: dict[str, list[Frame]] = {}
        logs: list[tuple[int, Ended]] = []
        for end in ended:
            holding = self._by_id.get(end.id)
            keep = holding is None or holding.request.keep
            brief = end if end.output is None else msgspec.structs.replace(end, output=None)
            stream.append(end if keep and not end.parent else brief)
            deltas = holding.deltas if holding is not None else 0
            if end.reply:
                frame = Frame(end.id, end.attempt, deltas, end)
                if end.reply in frames:
                    frames[end.reply].append(frame)
                else:
                    frames[end.reply] = [frame]
            if holding is not None and keep:
                logs.append((holding.logged, end if end.parent else brief))
        return Closing(stream, frames, logs)


class Closing(msgspec.Struct, frozen=True):
    """Where terminal events go.

    The stream keeps outputs of kept requests only, the frames carry them for whoever waits, the logs carry
    none, but those of a workflow's steps, which nothing else keeps. A frame's sequence number, and the number in
    `logs`, counts the deltas before it.
    """

    stream: list[Ended]
    frames: dict[str, list[Frame]]
    logs: list[tuple[int, Ended]]
