"""The settlers' and the sweeper's side of all queues in Redis."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog

from gateway.contract.events import Ended, Frame, decode_ended, encode_event, encode_frames
from gateway.queues.event_log import KEEP_S
from gateway.queues.keys import GATEWAYS, GROUP, Keys, keys_of, reply_channel
from gateway.queues.limits import GONE_MS, IDLE_MS, MOST_EXPIRED, MOST_UNSETTLED
from gateway.queues.moves import MOST_KEPT_MS, read_moved, word_of
from gateway.queues.port import Move, QueueUnavailable, Settlement, Swept
from gateway.queues.scripts import script
from gateway.queues.settlements import Entry, attempts_in, read_entry
from gateway.queues.wire import Wire, WireError

log = structlog.get_logger()

CLAIM_S = 1.0
"""Between two looks for entries that another settler left."""
PAGE = 1000
GRACE_S = 5.0

Read = tuple[str, Settlement]


class RedisSettler:
    """All pools, as one settler uses them (port.SettlerSide). `name` tells it from other settlers."""

    def __init__(self, url: str, name: str, *, idle_ms: int = IDLE_MS) -> None:
        self._wire = Wire(url)
        self._reader = Wire(url, answer_s=None)
        self._name = name
        self._idle_ms = idle_ms
        self._claim_at_s = 0.0
        self._cursors: dict[str, bytes] = {}

    async def close(self) -> None:
        """Close both connections."""
        await self._reader.close()
        await self._wire.close()

    async def settlements(self, pools: Sequence[str], most: int, *, wait_s: float) -> list[Read]:
        """Read new entries `(pool, entry)`, first those that another settler left for 5 s; waits up to `wait_s`."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        if not pools:
            await asyncio.sleep(wait_s)
        while pools:
            try:
                entries = await self._claimed(pools, most) or await self._new(pools, most, until_s - loop.time())
            except WireError as error:
                if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                    raise
                await self._make_groups(pools)  # first use, or Redis was emptied
            else:
                if entries or loop.time() >= until_s:
                    return entries
        return []

    async def _claimed(self, pools: Sequence[str], most: int) -> list[Read]:
        """Claim on a timer: a busy stream must not hide what a dead settler left."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._claim_at_s:
            return []
        rows: list[tuple[str, Any]] = []
        for pool in pools:
            answer = await self._wire.call(
                "XAUTOCLAIM", keys_of(pool).settlements, GROUP, self._name, self._idle_ms, "0-0", "COUNT", most
            )
            rows += [(pool, row) for row in answer[1]]
        if not rows:
            self._claim_at_s = loop.time() + CLAIM_S
        return await self._read(rows, again=True)

    async def _new(self, pools: Sequence[str], most: int, left_s: float) -> list[Read]:
        streams = [keys_of(pool).settlements for pool in pools]
        block = ("BLOCK", max(int(left_s * 1000), 1)) if left_s > 0 else ()
        try:
            async with asyncio.timeout(max(left_s, 0.0) + GRACE_S):
                asked = ("GROUP", GROUP, self._name, "COUNT", most, *block, "STREAMS", *streams, *(b">" for _ in pools))
                answer = await self._reader.call("XREADGROUP", *asked)
        except TimeoutError:
            self._reader.reset()
            raise QueueUnavailable("Redis does not answer") from None
        names = dict(zip(streams, pools, strict=True))
        return await self._read([(names[stream], row) for stream, rows in answer or () for row in rows])

    async def _read(self, rows: list[tuple[str, Any]], *, again: bool = False) -> list[Read]:
        entries: list[Read] = []
        for pool, (entry, fields) in rows:
            try:
                read = read_entry(fields, pool)
            except msgspec.MsgspecError as error:
                _unreadable(pool, entry, error)
                continue
            await self._close_log(pool, read)
            entries.append((pool, Settlement(entry.decode(), read.ended, read.move, again)))
        return entries

    async def _close_log(self, pool: str, read: Entry) -> None:
        """Write the last event of a kept request that no worker ended."""
        request = read.lost
        if request is None or not request.keep:
            return
        for ended in read.ended:
            events = keys_of(pool).events(request.id)
            attempt = max(ended.attempt, 1)
            await self._wire.run(script("log"), (events,), attempt, PAGE, KEEP_S, -1, encode_event(ended))

    async def _make_groups(self, pools: Sequence[str]) -> None:
        """Make the consumer groups, from the beginning of each stream: after a loss nothing is skipped."""
        for pool in pools:
            try:
                await self._wire.call("XGROUP", "CREATE", keys_of(pool).settlements, GROUP, "0", "MKSTREAM")
            except WireError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    async def settled(self, entries: Sequence[tuple[str, str]]) -> None:
        """Acknowledge and remove entries `(pool, entry)`: their charges have committed."""
        by_pool: dict[str, list[str]] = defaultdict(list)
        for pool, entry in entries:
            by_pool[pool].append(entry)
        for pool, ids in by_pool.items():
            for start in range(0, len(ids), PAGE):
                await self._wire.run(script("settled"), (keys_of(pool).settlements,), GROUP, *ids[start : start + PAGE])

    async def leave_word(self, pool: str, moves: Sequence[Move]) -> None:
        """Leave word in a pool of requests that it gave up, and that go on in others."""
        keys = keys_of(pool)
        for move in moves:
            request = move.request
            touched = (keys.jobs, keys.moved, keys.events(request.id))
            arguments = (request.id, move.attempt, word_of(move), request.deadline_ms, MOST_KEPT_MS, int(request.keep))
            await self._wire.run(script("leave_word"), touched, *arguments, KEEP_S)

    async def stops(self, pool: str, request_ids: Sequence[str]) -> list[Ended]:
        """Give the ends of requests that were to stop while they were on their way from this pool into another."""
        found = await self._wire.call("HMGET", keys_of(pool).cancels, *request_ids)
        return [ended for packed in found if packed is not None for ended in decode_ended(packed)]

    async def arrived(self, pool: str, attempts: Mapping[str, int]) -> set[str]:
        """Say which requests have come into a pool after attempts of these numbers in others, and may have ended."""
        jobs = await self._wire.call("HMGET", keys_of(pool).jobs, *attempts)
        settling = await self._settling(pool)
        found: set[str] = set()
        for (request_id, attempt), job in zip(attempts.items(), jobs, strict=True):
            moved = read_moved(job)
            there = job is not None and (moved is None or moved.attempt > attempt)
            if there or settling.get(request_id, 0) > attempt:
                found.add(request_id)
        return found

    async def forget(self, pool: str, request_ids: Sequence[str]) -> None:
        """Drop the word that this pool keeps of requests that went on in others, and have ended there."""
        keys = keys_of(pool)
        await self._wire.run(script("forget"), (keys.moved, keys.jobs, keys.cancels), *request_ids)

    async def announce(self, replies: Sequence[tuple[str, Frame]]) -> None:
        """Tell reply channels `(channel, frame)` what has been settled."""
        by_name: dict[str, list[Frame]] = defaultdict(list)
        for name, frame in replies:
            by_name[name].append(frame)
        call = self._wire.call
        await asyncio.gather(
            *(call("PUBLISH", reply_channel(name), encode_frames(frames)) for name, frames in by_name.items())
        )

    async def sweep(self, pool: str, attempts: int) -> Swept:
        """Return expired leases to the front of their queue; give up what was taken `attempts` times or was to stop."""
        keys = keys_of(pool)
        returned, given_up = await self._wire.run(
            script("sweep"),
            (
                *(keys.queue, keys.jobs, keys.wake, keys.leases),
                *(keys.attempts, keys.excused, keys.cancels, keys.settlements),
            ),
            attempts,
            MOST_EXPIRED,
        )
        await self._tidy(pool, keys)
        return Swept(returned, [request_id.decode() for request_id in given_up])

    async def _tidy(self, pool: str, keys: Keys) -> None:
        self._cursors[pool] = await self._wire.run(
            script("tidy"),
            (keys.tags, keys.workers, keys.settlements, keys.moved, keys.jobs, keys.cancels, keys.orders),
            self._cursors.get(pool, b"0"),
            GROUP,
            GONE_MS,
        )

    async def missing(self, pool: str, request_ids: Sequence[str]) -> dict[str, int] | None:
        """Say which ids are neither queued, leased nor in the settlements; None when too many are unsettled to tell.

        Free of races in this order: the caller reads candidates that are open in Postgres; this looks at queue and
        leases, then at the settlements, then at the pool where a request went on; the caller then looks whether they
        are still open in Postgres. A request moves only onward (lease, settlements, the next pool's queue, closed in
        Postgres), so one that moves meanwhile is seen later on.
        """
        return await self._missing(pool, dict.fromkeys(request_ids, 0))

    async def _missing(self, pool: str, attempts: dict[str, int]) -> dict[str, int] | None:
        """Look for requests whose attempts in the pools before had these numbers."""
        absent: dict[str, int] = {}
        left: dict[str, dict[str, int]] = defaultdict(dict)
        ids = list(attempts)
        for start in range(0, len(ids), PAGE):
            keys = keys_of(pool)
            answer = await self._wire.run(
                script("absent"), (keys.jobs, keys.settlements, keys.moved), MOST_UNSETTLED, *ids[start : start + PAGE]
            )
            if answer == -1:
                return None
            absent.update((one, attempts[one]) for one in (request_id.decode() for request_id in answer[0]))
            for request_id, word in zip(*[iter(answer[1])] * 2, strict=True):
                moved, one = read_moved(word), request_id.decode()
                if moved is not None and moved.attempt > attempts[one]:
                    left[moved.pool][one] = moved.attempt
                else:  # it was to come back
                    absent[one] = attempts[one]
        if not absent and not left:
            return absent
        settling = await self._settling(pool)
        return await self._further(left, settling, {one: at for one, at in absent.items() if one not in settling})

    async def _further(
        self, left: dict[str, dict[str, int]], settling: Mapping[str, int], missing: dict[str, int]
    ) -> dict[str, int] | None:
        """Look for what has left for other pools, and is not on its way there any more."""
        for pool, attempts in left.items():
            on = {one: attempt for one, attempt in attempts.items() if one not in settling}
            further = await self._missing(pool, on) if on else {}
            if further is None:
                return None
            missing |= further
        return missing

    async def _settling(self, pool: str) -> dict[str, int]:
        """Name the requests in the settlements of a pool, each with its latest attempt."""
        found: dict[str, int] = {}
        start = "-"
        while True:
            rows = await self._wire.call("XRANGE", keys_of(pool).settlements, start, "+", "COUNT", PAGE)
            for entry, fields in rows:
                for request_id, attempt in _attempts(pool, entry, fields):
                    found[request_id] = max(attempt, found.get(request_id, 0))
                start = "(" + entry.decode()
            if len(rows) < PAGE:
                return found

    async def gateways(self, silent_s: float) -> set[str]:
        """Name the gateways that gave a sign of life in the last `silent_s` seconds."""
        names = await self._wire.run(script("gateways"), (GATEWAYS,), int(silent_s * 1000))
        return {name.decode() for name in names}


def _attempts(pool: str, entry: bytes, fields: list[bytes]) -> list[tuple[str, int]]:
    try:
        return attempts_in(fields)
    except msgspec.MsgspecError as error:
        _unreadable(pool, entry, error)
        return []


def _unreadable(pool: str, entry: bytes, error: Exception) -> None:
    """Tell of an entry that is left in the stream for a release that can read it; its request ends at its deadline."""
    log.error("settlements.unreadable", pool=pool, entry=entry.decode(), error=str(error))
