"""One pool's queue in memory: the same changes as the Lua scripts make, each in one step of one event loop."""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gateway.contract.events import Ended, decode_ended, encode_ended, encode_event
from gateway.contract.pools import PoolSpec, WorkerStatus
from gateway.contract.request import Request, encode_request
from gateway.queues.event_log import Entry
from gateway.queues.keys import keys_of
from gateway.queues.limits import GONE_MS
from gateway.queues.moves import MOST_KEPT_MS, Moved, carrying, pack_moved, word_of
from gateway.queues.port import Cancel, Move, Standing, Swept, Taken, Waiting

Publish = Callable[[bytes, bytes], None]


@dataclass(slots=True)
class MemoryPool:
    """The state of one pool. `now_us` stands for the server's clock, `publish` for its channels."""

    name: str
    now_us: Callable[[], int]
    publish: Publish
    queue: list[tuple[float, str]] = field(default_factory=list)
    places: dict[str, float] = field(default_factory=dict)
    jobs: dict[str, Request] = field(default_factory=dict)
    tags: dict[int, float] = field(default_factory=dict)
    virtual: float = 0.0
    leases: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    excused: dict[str, int] = field(default_factory=dict)
    cancels: dict[str, bytes] = field(default_factory=dict)
    moved: dict[str, tuple[int, Moved]] = field(default_factory=dict)
    """Where requests went on, and until when that is kept."""
    stream: dict[str, list[bytes]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    """Entries that a settler has read, and when."""
    last_entry: int = 0
    logs: dict[str, list[Entry]] = field(default_factory=dict)
    workers: dict[str, tuple[int, WorkerStatus]] = field(default_factory=dict)
    orders: dict[str, str] = field(default_factory=dict)
    """Who may take no more: workers, and '' for the whole pool."""
    entered: int = 0
    """How many requests have ever come."""
    spec: PoolSpec | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is work or something to settle; whoever finds neither clears it."""

    def enqueue(self, items: Iterable[Waiting]) -> int:
        """Do what enqueue.lua does."""
        for item in items:
            request = item.request
            left = self.moved.get(request.id)
            if request.id in self.jobs or (left is not None and left[1].attempt > item.attempt):
                continue
            self.moved.pop(request.id, None)
            if item.attempt:
                self.attempts[request.id] = self.excused[request.id] = item.attempt
            finish = max(self.tags.get(request.account, 0.0), self.virtual) + item.cost
            self.tags[request.account] = finish
            self.jobs[request.id] = request
            self.entered += 1
            self._place(request.id, finish)
        return len(self.queue)

    def _place(self, request_id: str, finish: float) -> None:
        self.places[request_id] = finish
        insort(self.queue, (finish, request_id))
        self.news.set()

    def _unplace(self, request_id: str) -> bool:
        finish = self.places.pop(request_id, None)
        if finish is None:
            return False
        del self.queue[bisect_left(self.queue, (finish, request_id))]
        self._rest()
        return True

    def _rest(self) -> None:
        if not self.queue:
            self.tags.clear()
            self.virtual = 0.0

    def take(self, most: int, lease_ms: int) -> list[Taken]:
        """Do what take.lua does."""
        if "" in self.orders:
            return []
        got, self.queue = self.queue[:most], self.queue[most:]
        now_us = self.now_us()
        taken = []
        for finish, request_id in got:
            del self.places[request_id]
            self.virtual = finish or self.virtual
            self.leases[request_id] = now_us + lease_ms * 1000
            excused = self.excused.get(request_id, 0)
            taken.append(Taken(self.jobs[request_id], self._attempt(request_id), now_us, excused))
        self._rest()
        return taken

    def _attempt(self, request_id: str) -> int:
        return 1 + self.attempts.get(request_id, 0)

    def holds(self, request_id: str, attempt: int) -> bool:
        """Say whether an attempt has the lease: the fence."""
        return request_id in self.leases and self._attempt(request_id) == attempt

    def _forget(self, request_id: str) -> None:
        self.leases.pop(request_id, None)
        self.jobs.pop(request_id, None)
        self.attempts.pop(request_id, None)
        self.excused.pop(request_id, None)
        self.cancels.pop(request_id, None)

    def _settle(self, fields: list[bytes]) -> None:
        self.last_entry += 1
        self.stream[f"{self.last_entry}-0"] = fields
        self.news.set()

    def finish(self, ids: Sequence[str], stream: list[Ended]) -> None:
        """Do what finish.lua does once the fence has let these requests through."""
        self._settle([b"ended", encode_ended(stream)])
        for request_id in ids:
            self._forget(request_id)

    def hand_over(self, move: Move) -> bool:
        """Do what hand_over.lua does for one request; answers whether it was fenced."""
        request = move.request
        if not self.holds(request.id, move.attempt):
            left = self.moved.get(request.id)
            return left is None or word_of(move) != pack_moved(left[1])
        self._settle(
            [b"moved", encode_request(request), b"attempt", str(move.attempt).encode(), b"pool", move.pool.encode()]
        )
        stop = self.cancels.get(request.id)
        self._forget(request.id)
        if stop is not None:
            self.cancels[request.id] = stop
        self.leave_word(move)
        return False

    def leave_word(self, move: Move) -> None:
        """Do what leave_word.lua does."""
        request = move.request
        if request.id in self.jobs or request.id in self.moved:
            return
        now_ms = self.now_us() // 1000
        deadline_ms = min(request.deadline_ms or now_ms + MOST_KEPT_MS, now_ms + MOST_KEPT_MS)
        moved = Moved(move.pool, move.attempt, request.keep)
        self.moved[request.id] = max(deadline_ms, now_ms) + 60_000, moved
        if request.keep:
            self.close_log(request.id, move.attempt, -1, word_of(move))

    def forget(self, request_ids: Iterable[str]) -> None:
        """Do what forget.lua does."""
        for request_id in request_ids:
            if self.moved.pop(request_id, None) is not None:
                self.cancels.pop(request_id, None)

    def log(self, request_id: str, attempt: int, events: Iterable[tuple[int, bytes]]) -> None:
        """Do what log.lua does."""
        entries = self.logs.setdefault(request_id, [])
        for seq, packed in events:
            last_attempt, number = entries[-1][0].split("-") if entries else ("0", "0")
            if int(last_attempt) > attempt:
                break
            if int(last_attempt) < attempt:
                entries.clear()
                number = "-1"
            entries.append((f"{attempt}-{int(number) + 1}", seq, packed))
        self.publish(keys_of(self.name).events(request_id), b"")

    def close_log(self, request_id: str, attempt: int, seq: int, packed: bytes) -> None:
        """Write the last event of a log, as finish.lua and cancel.lua do."""
        entries = self.logs.get(request_id)
        if entries and int(entries[-1][0].split("-")[0]) > attempt:
            entries.clear()
        self.log(request_id, attempt, [(seq, packed)])

    def cancel(self, ended: Ended) -> str | Moved:
        """Do what cancel.lua does."""
        request = self.jobs.get(ended.id)
        end = carrying(ended, request, self.name) if request is not None else ended
        if request is not None and self._unplace(ended.id):
            attempt = self._attempt(ended.id)
            self._settle([b"ended", encode_ended([end])])
            self._forget(ended.id)
            if request.keep:
                self.close_log(ended.id, attempt, -1, encode_event(end))
            return "removed"
        if ended.id in self.leases:
            self.cancels[ended.id] = encode_ended([end])
            self.publish(keys_of(self.name).control, f"{ended.id} {ended.reason}".encode())
            return "told"
        if ended.id in self.moved:
            self.cancels[ended.id] = encode_ended([ended])
            return self.moved[ended.id][1]
        return "absent"

    def end(self, ended: Ended) -> None:
        """Put an end into the settlements."""
        self._settle([b"ended", encode_ended([ended])])

    def standing(self, request_id: str) -> Standing | Moved:
        """Do what standing.lua does."""
        if request_id in self.places:
            return Standing("queued", position=bisect_left(self.queue, (self.places[request_id], request_id)))
        if request_id in self.leases:
            return Standing("leased", attempt=self._attempt(request_id))
        return self.moved[request_id][1] if request_id in self.moved else Standing("absent")

    def beat(
        self, pairs: Iterable[tuple[str, int]], lease_ms: int, status: WorkerStatus
    ) -> tuple[list[str], list[Cancel]]:
        """Do what beat.lua does."""
        now_us = self.now_us()
        self.workers[status.worker] = (now_us, status)
        lost, cancelled = [], []
        for request_id, attempt in pairs:
            if not self.holds(request_id, attempt):
                lost.append(request_id)
                continue
            self.leases[request_id] = now_us + lease_ms * 1000
            if request_id in self.cancels:
                cancelled.append(Cancel(request_id, decode_ended(self.cancels[request_id])[0].reason))
        return lost, cancelled

    def give_back(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Do what give_back.lua does."""
        for request_id, attempt in pairs:
            if self.holds(request_id, attempt):
                del self.leases[request_id]
                self.attempts[request_id] = attempt
                self.excused[request_id] = self.excused.get(request_id, 0) + 1
                self._place(request_id, 0.0)

    def sweep(self, attempts: int, most: int) -> Swept:
        """Do what sweep.lua does."""
        now_us = self.now_us()
        expired = sorted((expiry, request_id) for request_id, expiry in self.leases.items() if expiry <= now_us)
        returned, given_up = 0, []
        for _, request_id in expired[:most]:
            attempt = self._attempt(request_id)
            stop = self.cancels.get(request_id, b"")
            if stop or attempt - self.excused.get(request_id, 0) >= attempts:
                payload = encode_request(self.jobs[request_id])
                self._settle([b"lost", payload, b"attempt", str(attempt).encode(), b"cancel", stop])
                self._forget(request_id)
                given_up.append(request_id)
            else:
                del self.leases[request_id]
                self.attempts[request_id] = attempt
                self._place(request_id, 0.0)
                returned += 1
        self._tidy(now_us)
        return Swept(returned, given_up)

    def _tidy(self, now_us: int) -> None:
        """Do what tidy.lua does."""
        self.forget([one for one, (until_ms, _) in self.moved.items() if until_ms <= now_us // 1000])
        self.tags = {account: tag for account, tag in self.tags.items() if tag > self.virtual}
        for name in [name for name, seen in self.workers.items() if seen[0] < now_us - GONE_MS * 1000]:
            del self.workers[name]
            self.orders.pop(name, None)
