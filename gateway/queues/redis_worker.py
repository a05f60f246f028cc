"""A worker's side of a queue in Redis."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import msgspec
import structlog

from gateway.contract.events import Ended, Frame, decode_ended, encode_ended, encode_event, encode_frames
from gateway.contract.pools import PoolSpec, WorkerStatus, decode_spec, encode_status
from gateway.contract.request import Request, decode_request, encode_request
from gateway.queues.event_log import KEEP_S, MOST_ENTRIES
from gateway.queues.held import Held, read_cancel
from gateway.queues.keys import keys_of, reply_channel
from gateway.queues.limits import LEASE_MS, MOST_AT_ONCE
from gateway.queues.moves import MOST_KEPT_MS, word_of
from gateway.queues.port import Beat, Cancel, Move, QueueUnavailable, Taken
from gateway.queues.scripts import script
from gateway.queues.subscriber import Subscriber
from gateway.queues.wire import ANSWER_S, ScriptMissing, Wire

log = structlog.get_logger()

GRACE_S = 5.0
"""How much longer than asked a blocking command may take before its connection counts as lost."""


class RedisWorker:
    """The queue of one pool, as one worker uses it (port.WorkerSide).

    It remembers what it holds, so leases are extended and given back only under their own attempt. A `finish`
    that raised QueueUnavailable is to be repeated with the same events: its answer then is true again.
    """

    def __init__(self, url: str, pool: str) -> None:
        self._wire = Wire(url)
        self._waiter = Wire(url, answer_s=None)
        self._channels = Subscriber(url)
        self._keys = keys = keys_of(pool)
        self._held = Held()
        self._unsure: set[tuple[str, int]] = set()
        self._lease_ms = LEASE_MS
        self._drained = False
        self._sleeper: asyncio.Future[Any] | None = None
        self._apart: set[asyncio.Task[Any]] = set()
        self._take_script = script("take")
        first = (keys.queue, keys.jobs, keys.tags, keys.wake)
        self._take_keys = (*first, keys.leases, keys.attempts, keys.excused, keys.orders)
        self._finish_keys = (keys.settlements, keys.jobs, keys.leases, keys.attempts, keys.excused, keys.cancels)

    async def close(self) -> None:
        """Close all connections, once what a cancelled taking left has been given back. Leases that are left expire."""
        until_s = asyncio.get_running_loop().time() + GRACE_S
        while self._apart and (left_s := until_s - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._apart, timeout=left_s)
        await self._channels.close()
        await self._waiter.close()
        await self._wire.close()

    async def spec(self) -> PoolSpec | None:
        """Read what the pool serves, and the length of its leases; None while nobody has said so."""
        packed = await self._wire.call("GET", self._keys.spec)
        if packed is None:
            return None
        spec = decode_spec(packed)
        self._lease_ms = spec.lease_ms
        return spec

    async def take(self, most: int, *, wait_s: float) -> list[Taken]:
        """Take up to `most` requests under lease, waiting without polling up to `wait_s` for the first.

        Where the last taking emptied the queue, whatever came since has left a wake-up, so that is what is asked
        for. A taking that is cancelled gives back what comes of it.
        """
        loop = asyncio.get_running_loop()
        most = min(most, MOST_AT_ONCE)
        until_s = loop.time() + wait_s
        if not self._drained or wait_s <= 0:
            taken = await self._undisturbed(self._take(most), ANSWER_S + GRACE_S)
            if taken or wait_s <= 0:
                return taken
        while (left_s := until_s - loop.time()) > 0:
            taken = await self._undisturbed(self._sleep(most, left_s), left_s + GRACE_S)
            if taken:
                return taken
        return []

    async def _undisturbed(self, taking: Coroutine[Any, Any, list[Taken]], timeout_s: float) -> list[Taken]:
        """Wait for a taking, and see to what comes of it when the waiting ends before."""
        task = self._keep(taking)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(task)
        except TimeoutError:
            task.add_done_callback(self._return)
            self._waiter.reset()
            raise QueueUnavailable("Redis does not answer") from None
        except asyncio.CancelledError:
            task.add_done_callback(self._return)
            self._keep(self._quietly(self._unblock()))
            raise

    async def _take(self, most: int) -> list[Taken]:
        return self._taken(most, await self._wire.run(self._take_script, self._take_keys, most, self._lease_ms))

    async def _sleep(self, most: int, left_s: float) -> list[Taken]:
        """Wait for the wake-up and take at once: three commands in one write, so being woken costs one round trip."""
        call, keys = self._waiter.call, self._take_keys
        self._sleeper = call("CLIENT", "ID")
        wake = call("BLPOP", self._keys.wake, max(round(left_s, 3), 0.01))
        take = call("EVALSHA", self._take_script.sha, len(keys), *keys, most, self._lease_ms)
        try:
            await asyncio.gather(self._sleeper, wake, take)
        except ScriptMissing:
            return await self._take(most)
        finally:
            self._sleeper = None
        return self._taken(most, take.result())

    def _taken(self, most: int, answer: list[Any]) -> list[Taken]:
        self._drained = len(answer) < 1 + 3 * most
        try:
            taken = [
                Taken(decode_request(answer[i]), answer[i + 1], answer[0], answer[i + 2])
                for i in range(1, len(answer), 3)
            ]
        except msgspec.MsgspecError:
            taken = _readable(answer)
        self._held.add(taken)
        return taken

    async def _unblock(self) -> None:
        """Wake this worker's own blocked command, so that nothing is taken for nobody later on."""
        if self._sleeper is not None:
            await self._wire.call("CLIENT", "UNBLOCK", await asyncio.shield(self._sleeper))

    def _return(self, task: asyncio.Task[list[Taken]]) -> None:
        if not task.cancelled() and task.exception() is None and task.result():
            self._keep(self._quietly(self.give_back([taken.request.id for taken in task.result()])))

    @staticmethod
    async def _quietly(change: Coroutine[Any, Any, Any]) -> None:
        try:
            await change
        except QueueUnavailable:
            return  # the lease expires, and the sweep wakes the others

    def _keep(self, change: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(change)
        self._apart.add(task)
        task.add_done_callback(self._apart.discard)
        return task

    async def beat(self, request_ids: Sequence[str], status: WorkerStatus) -> Beat:
        """Extend the leases of `request_ids`, all in one command, and leave the worker's status."""
        keys = self._keys
        held = self._held.attempts(request_ids)
        lost, cancelled, drain = await self._wire.run(
            script("beat"),
            (keys.leases, keys.attempts, keys.cancels, keys.workers, keys.orders),
            self._lease_ms,
            status.worker,
            encode_status(status),
            len(held),
            *(request_id for request_id, _ in held),
            *(attempt for _, attempt in held),
        )
        gone = {request_id.decode() for request_id in lost}
        self._held.drop(pair for pair in held if pair[0] in gone)
        gone.update(set(request_ids).difference(request_id for request_id, _ in held))
        all_lost = [request_id for request_id in request_ids if request_id in gone]
        stops = zip(cancelled[::2], cancelled[1::2], strict=True)
        told = [Cancel(request_id.decode(), decode_ended(packed)[0].reason) for request_id, packed in stops]
        return Beat(all_lost, told, bool(drain))

    async def cancels(self) -> AsyncIterator[Cancel]:
        """Yield leased requests that are to stop, as they are told; a heartbeat repeats them."""
        told: asyncio.Queue[Cancel] = asyncio.Queue()

        def heard(message: bytes) -> None:
            cancel = read_cancel(message)
            if cancel.id in self._held:
                told.put_nowait(cancel)

        await self._channels.subscribe(self._keys.control, heard, lambda: None)
        try:
            while True:
                yield await told.get()
        finally:
            await self._channels.unsubscribe(self._keys.control, heard)

    async def finish(self, ended: Sequence[Ended]) -> list[str]:
        """Put terminal events into the settlements, give up their leases, and tell who waits, in one step.

        Answers the fenced ids: they left no trace. Raises QueueUnavailable when that is not known.
        """
        try:
            fenced = await self._finish_all([end for end in ended if _attempt(end) not in self._unsure], retried=False)
            fenced += await self._finish_all([end for end in ended if _attempt(end) in self._unsure], retried=True)
        except QueueUnavailable:
            self._unsure.update(map(_attempt, ended))
            raise
        self._held.drop(map(_attempt, ended))
        self._unsure.difference_update(map(_attempt, ended))
        return fenced

    async def _finish_all(self, ended: Sequence[Ended], *, retried: bool) -> list[str]:
        fenced: list[str] = []
        for start in range(0, len(ended), MOST_AT_ONCE):
            batch = list(ended[start : start + MOST_AT_ONCE])
            while batch:
                answer = await self._finish_batch(batch, retried)
                if not answer:
                    break
                fenced += [request_id.decode() for request_id in answer[0]]
                gone = {request_id.decode() for ids in answer for request_id in ids}
                batch = [end for end in batch if end.id not in gone]
        return fenced

    async def _finish_batch(self, batch: list[Ended], retried: bool) -> Any:
        closing = self._held.closing(batch)
        arguments: list[str | int | bytes]
        arguments = [int(retried), len(batch), encode_ended(closing.stream), len(closing.frames), KEEP_S]
        arguments += [end.id for end in batch]
        arguments += [end.attempt for end in batch]
        for name, frames in closing.frames.items():
            arguments += (reply_channel(name), encode_frames(frames))
        keys = list(self._finish_keys)
        for deltas, end in closing.logs:
            keys.append(self._keys.events(end.id))
            arguments += (end.attempt, deltas, encode_event(end))
        return await self._wire.run(script("finish"), keys, *arguments)

    async def hand_over(self, moves: Sequence[Move]) -> list[str]:
        """Let leased requests go on in other pools: give up their leases, leave word, and send them on, in one step.

        Answers the fenced ids. Raises QueueUnavailable when it is not known; it is to be repeated then.
        """
        fenced: list[str] = []
        keys = self._keys
        touched = (keys.settlements, keys.jobs, keys.leases, keys.attempts, keys.excused, keys.moved)
        for start in range(0, len(moves), MOST_AT_ONCE):
            batch = moves[start : start + MOST_AT_ONCE]
            arguments: list[str | int | bytes] = [KEEP_S, MOST_KEPT_MS]
            logs = [keys.events(move.request.id) for move in batch if move.request.keep]
            for move in batch:
                request = move.request
                arguments += (request.id, move.attempt, move.pool, encode_request(request), word_of(move))
                arguments += (request.deadline_ms, int(request.keep))
            fenced += [one.decode() for one in await self._wire.run(script("hand_over"), (*touched, *logs), *arguments)]
        self._held.drop((move.request.id, move.attempt) for move in moves)
        return fenced

    async def emit(self, frames: Sequence[tuple[Request, Frame]]) -> None:
        """Send what one tick produced: to reply channels in coalesced frames, and to the event log of kept requests."""
        channels: dict[str, list[Frame]] = {}
        logs: dict[str, list[Frame]] = {}
        for request, frame in self._held.current(frames):
            if request.reply:
                channels.setdefault(request.reply, []).append(frame)
            if request.keep:
                logs.setdefault(request.id, []).append(frame)
        call = self._wire.call
        sent: list[Any] = [
            call("PUBLISH", reply_channel(name), encode_frames(gathered)) for name, gathered in channels.items()
        ]
        sent += [self._log(request_id, gathered) for request_id, gathered in logs.items()]
        if len(sent) == 1:
            await sent[0]
        else:
            for result in await asyncio.gather(*sent, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    async def _log(self, request_id: str, frames: list[Frame]) -> None:
        arguments: list[int | bytes] = [frames[0].attempt, MOST_ENTRIES, KEEP_S]
        for frame in frames:
            arguments += (frame.seq, encode_event(frame.event))
        await self._wire.run(script("log"), (self._keys.events(request_id),), *arguments)

    async def give_back(self, request_ids: Sequence[str]) -> None:
        """Return leased requests that did not begin to the front of the queue, at no attempt's cost."""
        keys, pairs = self._keys, self._held.attempts(request_ids)
        for start in range(0, len(pairs), MOST_AT_ONCE):
            arguments = [value for pair in pairs[start : start + MOST_AT_ONCE] for value in pair]
            touched = (keys.queue, keys.wake, keys.leases, keys.attempts, keys.excused)
            await self._wire.run(script("give_back"), touched, *arguments)
        self._held.drop(pairs)


def _attempt(ended: Ended) -> tuple[str, int]:
    return ended.id, ended.attempt


def _readable(answer: list[Any]) -> list[Taken]:
    """Take what can be read; the lease of what cannot expires, for a worker of the release that wrote it."""
    taken = []
    for i in range(1, len(answer), 3):
        try:
            taken.append(Taken(decode_request(answer[i]), answer[i + 1], answer[0], answer[i + 2]))
        except msgspec.MsgspecError as error:
            log.error("take.unreadable", error=str(error), attempt=answer[i + 1])
    return taken
