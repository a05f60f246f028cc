"""In the settler: requests that failed in one pool go on in the next.

A worker that fails, and has told its caller nothing yet, ends its lease with the word of where its request goes on, in
one step (`queues/lua/hand_over.lua`). What it is there comes here through the settlements, as does what a pool's
workers were lost over; it is acknowledged when it is in its next queue. So no request is in two queues, whoever dies.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec
import structlog

from gateway.catalog.model import Snapshot
from gateway.contract.events import Ended, Frame
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.ledger.open_requests import OpenRequests
from gateway.queues.port import GatewaySide, Move, QueueUnavailable, Settlement, SettlerSide, Waiting
from gateway.settler_metrics import SettlerMetrics

log = structlog.get_logger()

Read = tuple[str, Settlement]


class Arrivals:
    """What has come to be settled: it sends on what goes on, and gives what has ended."""

    def __init__(
        self,
        *,
        queues: SettlerSide,
        queue: Callable[[str], GatewaySide],
        open_requests: OpenRequests,
        snapshot: Callable[[], Snapshot],
        metrics: SettlerMetrics,
    ) -> None:
        self._queues = queues
        self._queue = queue
        self._open_requests = open_requests
        self._snapshot = snapshot
        self._metrics = metrics

    async def settlements(self, most: int, *, wait_s: float) -> list[Read]:
        """Read entries of all pools, and give those with ends. Waits up to `wait_s`."""
        pools = self._snapshot().pools
        entries = await self._queues.settlements(list(pools), most, wait_s=wait_s)
        ended: list[Read] = []
        moving: dict[str, list[Settlement]] = defaultdict(list)
        for pool, entry in entries:
            if entry.move is None:
                ended.append((pool, entry))
            elif entry.move.pool in pools:
                moving[pool].append(entry)
            else:  # the catalog has changed since
                ended.append((pool, msgspec.structs.replace(entry, ended=[_stranded(entry.move, pool)])))
        for pool, leaving in moving.items():
            await self._send_on(pool, leaving)
        return ended

    async def settled(self, entries: Sequence[tuple[str, str]]) -> None:
        """Acknowledge entries `(pool, entry)`: their charges have committed."""
        await self._queues.settled(entries)

    async def announce(self, replies: Sequence[tuple[str, Frame]]) -> None:
        """Tell reply channels `(channel, frame)` what has been settled."""
        await self._queues.announce(replies)

    async def forget(self, ended: Sequence[Ended]) -> None:
        """Let the pools that ended requests went through forget them."""
        passed: dict[str, list[str]] = defaultdict(list)
        for end in ended:
            if end.pool:
                for pool in {step.pool for step in end.steps if step.pool} - {end.pool}:
                    passed[pool].append(end.id)
        for pool, ids in passed.items():
            await self._queues.forget(pool, ids)

    async def _send_on(self, pool: str, entries: Sequence[Settlement]) -> None:
        """Put what leaves a pool into its next queues; what cannot be put there now is read again."""
        try:
            await self._put([entry.move for entry in entries if entry.move and not entry.again], pool)
            await self._put(
                await self._unarrived([entry.move for entry in entries if entry.move and entry.again]), pool
            )
            await self._queues.settled([(pool, entry.entry) for entry in entries])
        except QueueUnavailable as error:
            log.warning("hand_over.retry", pool=pool, requests=len(entries), error=str(error))

    async def _put(self, moves: Sequence[Move], pool: str) -> None:
        """Put requests into the queues they go on in, and stop there what was to stop on the way."""
        if not moves:
            return
        await self._queues.leave_word(pool, [move for move in moves if move.lost])
        going: dict[str, list[Waiting]] = defaultdict(list)
        for move in moves:
            going[move.pool].append(Waiting(move.request, attempt=move.attempt))
        for there, items in going.items():
            await self._queue(there).enqueue(items)
            self._metrics.handed_over(pool, there, len(items))
        log.info("hand_over", pool=pool, requests={move.request.id: move.pool for move in moves})
        goals = {move.request.id: move.pool for move in moves}
        for end in await self._queues.stops(pool, list(goals)):
            await self._queue(goals[end.id]).cancel(end)

    async def _unarrived(self, moves: Sequence[Move]) -> list[Move]:
        """Pick those that are not known to have come into their next queue; one that has may have ended there.

        The order of looks matters: the queue, its settlements (both in `arrived`), then Postgres.
        """
        going: dict[str, dict[str, int]] = defaultdict(dict)
        for move in moves:
            going[move.pool][move.request.id] = move.attempt
        arrived: set[str] = set()
        for pool, attempts in going.items():
            arrived |= await self._queues.arrived(pool, attempts)
        left = [move for move in moves if move.request.id not in arrived]
        still_open = set(await self._open_requests.still_open([move.request.id for move in left])) if left else set()
        return [move for move in left if move.request.id in still_open]


def _stranded(move: Move, pool: str) -> Ended:
    """Make the end of a request whose next pool is no longer in the catalog: as its last attempt ended."""
    request = move.request
    last = request.steps[-1]
    return Ended(
        request.id,
        move.attempt,
        "failed",
        last.reason,
        Units(),
        Phases(),
        request.price,
        reply=request.reply,
        steps=request.steps,
        pool=pool,
    )
