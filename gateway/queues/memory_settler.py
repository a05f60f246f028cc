"""The settlers' and the sweeper's side of the queue's twin in memory."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from gateway.contract.events import Ended, Frame, decode_ended, encode_event, encode_frames
from gateway.queues.keys import reply_channel
from gateway.queues.limits import MOST_EXPIRED, MOST_UNSETTLED
from gateway.queues.memory_pool import MemoryPool, Publish
from gateway.queues.port import Move, Settlement, Swept
from gateway.queues.settlements import latest_in, read_entry


class MemorySettler:
    """All pools, as one settler uses them (port.SettlerSide)."""

    def __init__(
        self,
        state: Callable[[str], MemoryPool],
        publish: Publish,
        now_us: Callable[[], int],
        gateways: dict[str, int],
        idle_ms: int,
    ) -> None:
        self._state = state
        self._publish = publish
        self._now_us = now_us
        self._gateways = gateways
        self._idle_us = idle_ms * 1000

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    async def settlements(self, pools: Sequence[str], most: int, *, wait_s: float) -> list[tuple[str, Settlement]]:
        """Read new entries `(pool, entry)`, and those that a settler has left for 5 s; waits up to `wait_s`."""
        states = [self._state(name) for name in pools]
        until_s = asyncio.get_running_loop().time() + wait_s
        while True:
            entries = [entry for state in states for entry in self._unread(state)][:most]
            again = [entry in state.read for state, entry in entries]
            for state, entry in entries:
                state.read[entry] = self._now_us()
            if entries or asyncio.get_running_loop().time() >= until_s:
                read = zip(entries, again, strict=True)
                return [(state.name, self._entry(state, entry, before)) for (state, entry), before in read]
            await asyncio.sleep(0.005)

    def _unread(self, state: MemoryPool) -> list[tuple[MemoryPool, str]]:
        left_us = self._now_us() - self._idle_us
        return [(state, entry) for entry in state.stream if state.read.get(entry, 0) <= left_us]

    def _entry(self, state: MemoryPool, entry: str, again: bool) -> Settlement:
        read = read_entry(state.stream[entry], state.name)
        if read.lost is not None and read.lost.keep:
            for ended in read.ended:
                state.log(read.lost.id, max(ended.attempt, 1), [(-1, encode_event(ended))])
        return Settlement(entry, read.ended, read.move, again)

    async def settled(self, entries: Sequence[tuple[str, str]]) -> None:
        """Acknowledge and remove entries `(pool, entry)`."""
        for pool, entry in entries:
            state = self._state(pool)
            state.stream.pop(entry, None)
            state.read.pop(entry, None)

    async def leave_word(self, pool: str, moves: Sequence[Move]) -> None:
        """Leave word in a pool of requests that it gave up, and that go on in others."""
        for move in moves:
            self._state(pool).leave_word(move)

    async def stops(self, pool: str, request_ids: Sequence[str]) -> list[Ended]:
        """Give the ends of requests that were to stop while they were on their way from this pool into another."""
        cancels = self._state(pool).cancels
        return [ended for one in request_ids if one in cancels for ended in decode_ended(cancels[one])]

    async def arrived(self, pool: str, attempts: Mapping[str, int]) -> set[str]:
        """Say which requests have come into a pool after attempts of these numbers in others, and may have ended."""
        state = self._state(pool)
        settling = latest_in(state.stream.values())
        left = {one: moved.attempt for one, (_, moved) in state.moved.items()}
        return {
            one
            for one, attempt in attempts.items()
            if one in state.jobs or left.get(one, 0) > attempt or settling.get(one, 0) > attempt
        }

    async def forget(self, pool: str, request_ids: Sequence[str]) -> None:
        """Drop the word that this pool keeps of requests that went on in others, and have ended there."""
        self._state(pool).forget(request_ids)

    async def announce(self, replies: Sequence[tuple[str, Frame]]) -> None:
        """Tell reply channels `(channel, frame)` what has been settled."""
        by_name: dict[str, list[Frame]] = defaultdict(list)
        for name, frame in replies:
            by_name[name].append(frame)
        for name, frames in by_name.items():
            self._publish(reply_channel(name), encode_frames(frames))

    async def sweep(self, pool: str, attempts: int) -> Swept:
        """Return expired leases to the front of their queue; give up what was taken `attempts` times or was to stop."""
        return self._state(pool).sweep(attempts, MOST_EXPIRED)

    async def missing(self, pool: str, request_ids: Sequence[str]) -> dict[str, int] | None:
        """Say which ids are neither queued, leased nor in the settlements; None when too many are unsettled to tell."""
        found: dict[str, int] = {}
        for request_id in request_ids:
            attempt = self._missing(self._state(pool), request_id, 0)
            if attempt is None:
                return None
            if attempt >= 0:
                found[request_id] = attempt
        return found

    def _missing(self, state: MemoryPool, request_id: str, attempt: int) -> int | None:
        """Give a missing request's last attempt, -1 where it is not missing, None where that is unknown."""
        if len(state.stream) > MOST_UNSETTLED:
            return None
        if request_id in state.jobs or request_id in latest_in(state.stream.values()):
            return -1
        left = state.moved.get(request_id)
        if left is None or left[1].attempt <= attempt:
            return attempt
        return self._missing(self._state(left[1].pool), request_id, left[1].attempt)

    async def gateways(self, silent_s: float) -> set[str]:
        """Name the gateways that gave a sign of life in the last `silent_s` seconds."""
        oldest = self._now_us() - int(silent_s * 1e6)
        return {name for name, seen_us in self._gateways.items() if seen_us >= oldest}
