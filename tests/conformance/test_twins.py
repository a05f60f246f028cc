"""The twin in memory and the queue in Redis answer alike, whatever is done to them in whatever order."""

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from gateway.contract.events import Ended, Frame, TextDelta
from gateway.contract.request import Request
from gateway.queues.keys import keys_of
from gateway.queues.port import EventsLost, Move, Taken, Waiting
from tests.conformance.backends import SOON_S, InMemory, InRedis, ended, onward, request, status, stopped

T = TypeVar("T")
WORKERS = 3
_pools = count()


class Twins(RuleBasedStateMachine):
    """Does everything twice and compares the answers."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.pool = f"pool-{next(_pools)}"
        self.backends = (InMemory(), self.run(self.in_redis(url)))
        self.gateways = [backend.gateway(self.pool) for backend in self.backends]
        self.workers = [[backend.worker(self.pool) for _ in range(WORKERS)] for backend in self.backends]
        self.settlers = [backend.settler() for backend in self.backends]
        self.requests: list[Request] = []
        self.taken: list[tuple[int, Taken]] = []
        self.deltas: dict[tuple[str, int], int] = {}
        self.unsettled: list[tuple[list[str], list[str]]] = []
        self.on_the_way: list[Move] = []
        self.kept_ends: set[str] = set()
        self.forgotten: set[str] = set()
        """What has ended elsewhere: nobody asks here for its end, even where a mistake brings it back."""

    @staticmethod
    async def in_redis(url: str) -> InRedis:
        return InRedis(url)

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(doing)

    def both(self, doings: list[Coroutine[Any, Any, T]]) -> T:
        """Do it to both, and compare."""
        in_memory, in_redis = self.run(self.gathered(doings))
        assert in_memory == in_redis
        return in_memory

    @staticmethod
    async def gathered(doings: list[Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*doings))

    def new(self, account: int, keep: bool) -> Request:
        """Make a request whose id is the same in every repetition, since ties are broken by ids."""
        legs = [self.pool, f"{self.pool} of others", self.pool][account - 2 :] if account > 1 else []
        one = msgspec.structs.replace(request(account, keep=keep, legs=legs), id=f"req_{len(self.requests):032x}")
        self.requests.append(one)
        return one

    @rule(
        accounts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
        cost=st.sampled_from([0.25, 1.0, 1.1, 7.3]),
        keep=st.sampled_from([True, True, False]),
    )
    def enqueue(self, accounts: list[int], cost: float, keep: bool) -> None:
        new = [self.new(account, keep) for account in accounts]
        self.both([gateway.enqueue([Waiting(one, cost) for one in new]) for gateway in self.gateways])

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def enqueue_again(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.requests))
        self.both([gateway.enqueue([Waiting(one)]) for gateway in self.gateways])
        self.kept_ends.discard(one.id)  # it may run again, and end later

    @rule(worker=st.integers(0, WORKERS - 1), most=st.integers(1, 3))
    def take(self, worker: int, most: int) -> None:
        answers = self.run(self.gathered([workers[worker].take(most, wait_s=0) for workers in self.workers]))
        in_memory, in_redis = ([(one.request, one.attempt, one.excused) for one in taken] for taken in answers)
        assert in_memory == in_redis
        self.taken += [(worker, one) for one in answers[0]]

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), now=st.booleans())
    def emit(self, data: st.DataObject, now: bool) -> None:
        """Emit one delta of a running request, or of any attempt that ever was."""
        worker, one = data.draw(st.sampled_from((now and self.running()) or self.taken))
        key = (one.request.id, one.attempt)
        seq = self.deltas.get(key, 0)
        self.deltas[key] = seq + 1
        frames = [(one.request, Frame(one.request.id, one.attempt, seq, TextDelta(f"{worker}.{seq}")))]
        self.both([workers[worker].emit(frames) for workers in self.workers])

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), now=st.sampled_from([True, True, False]))
    def finish(self, data: st.DataObject, now: bool) -> None:
        """Finish what a worker has, or what it took in whatever attempt, finished before or not."""
        takings = (now and self.running()) or self.taken
        worker, _ = data.draw(st.sampled_from(takings))
        mine = [one for taker, one in takings if taker == worker]
        some = data.draw(st.lists(st.sampled_from(mine), unique_by=lambda one: one.request.id, max_size=4))
        fenced = self.both([workers[worker].finish([ended(one) for one in some]) for workers in self.workers])
        self.kept_ends |= {one.request.id for one in some if one.request.keep and one.request.id not in fenced}

    @precondition(lambda self: any(one.request.legs for _, one in self.taken))
    @rule(data=st.data(), now=st.sampled_from([True, True, False]))
    def hand_over(self, data: st.DataObject, now: bool) -> None:
        """Hand over what a worker has, or what it took in whatever attempt."""
        failed = [pair for pair in (now and self.running()) or self.taken if pair[1].request.legs]
        if failed:
            worker, one = data.draw(st.sampled_from(failed))
            self.both([workers[worker].hand_over([onward(one, self.pool)]) for workers in self.workers])

    @precondition(lambda self: self.on_the_way)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """Carry a request into its next queue, in any order, and now and then once more."""
        move = data.draw(st.sampled_from(self.on_the_way))
        self.both([settler.arrived(move.pool, {move.request.id: move.attempt}) for settler in self.settlers])
        if move.lost:
            self.both([settler.leave_word(self.pool, [move]) for settler in self.settlers])
        gateways = [backend.gateway(move.pool) for backend in self.backends]
        self.both([gateway.enqueue([Waiting(move.request, attempt=move.attempt)]) for gateway in gateways])
        for end in self.both([settler.stops(self.pool, [move.request.id]) for settler in self.settlers]):
            self.both([gateway.cancel(end) for gateway in gateways])
        self.kept_ends.discard(move.request.id)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.requests))
        self.both([settler.forget(self.pool, [one.id]) for settler in self.settlers])
        self.forgotten.add(one.id)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.requests))
        if self.both([gateway.cancel(stopped(one)) for gateway in self.gateways]) == "removed" and one.keep:
            self.kept_ends.add(one.id)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        takings = self.running() or self.taken
        worker, _ = data.draw(st.sampled_from(takings))
        mine = [one for taker, one in takings if taker == worker]
        ids = data.draw(st.lists(st.sampled_from([one.request.id for one in mine]), min_size=1, max_size=3))
        self.both([workers[worker].give_back(ids) for workers in self.workers])

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), worker=st.integers(0, WORKERS - 1))
    def beat(self, data: st.DataObject, worker: int) -> None:
        some = data.draw(st.lists(st.sampled_from(self.taken[-12:]), max_size=5))
        ids = list(dict.fromkeys(one.request.id for _, one in some))
        self.both([workers[worker].beat(ids, status(str(worker))) for workers in self.workers])

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), attempts=st.sampled_from([1, 2, 3, 3, 5]))
    def expire_and_sweep(self, data: st.DataObject, attempts: int) -> None:
        running = self.running()
        leased = (
            data.draw(st.lists(st.sampled_from([one.request.id for _, one in running]), max_size=4)) if running else []
        )
        if leased:
            for backend in self.backends:
                backend.expire(*leased, pool=self.pool)
        self.both([settler.sweep(self.pool, attempts) for settler in self.settlers])

    def running(self) -> list[tuple[int, Taken]]:
        """Pick the takings that still have their lease, and their workers."""
        state = self.backends[0].state(self.pool)
        return [(worker, one) for worker, one in self.taken if state.holds(one.request.id, one.attempt)]

    def standing(self, request_id: str) -> str:
        return self.both([gateway.standing(request_id) for gateway in self.gateways]).state

    @rule(most=st.integers(1, 5))
    def read_settlements(self, most: int) -> None:
        answers = self.run(
            self.gathered([settler.settlements([self.pool], most, wait_s=0) for settler in self.settlers])
        )
        in_memory, in_redis = ([(entry.ended, _gist(entry.move)) for _, entry in entries] for entries in answers)
        assert in_memory == in_redis
        self.on_the_way += [entry.move for _, entry in answers[0] if entry.move is not None]
        for one, other in zip(*answers, strict=True):
            self.unsettled.append(([one[1].entry], [other[1].entry]))

    @precondition(lambda self: self.unsettled)
    @rule()
    def settle(self) -> None:
        for entries in self.unsettled:
            self.both(
                [
                    settler.settled([(self.pool, entry) for entry in own])
                    for settler, own in zip(self.settlers, entries, strict=True)
                ]
            )
        self.unsettled.clear()

    @invariant()
    def alike(self) -> None:
        """Compare all that decides what happens next."""
        in_memory, in_redis = self.backends
        state, keys, pipeline = in_memory.state(self.pool), keys_of(self.pool), in_redis.client.pipeline()
        pipeline.zrange(keys.queue, 0, -1, withscores=True).zrange(keys.leases, 0, -1).hkeys(keys.jobs)
        for key in (keys.attempts, keys.excused, keys.tags, keys.cancels):
            pipeline.hgetall(key)
        pipeline.zrange(keys.moved, 0, -1)
        queue, leases, jobs, attempts, excused, tags, cancels, moved = pipeline.execute()
        virtual = float(tags.pop(b"", 0))
        assert [(finish, request_id.decode()) for request_id, finish in queue] == state.queue
        assert {request_id.decode() for request_id in leases} == set(state.leases)
        assert {request_id.decode() for request_id in jobs} == {*state.jobs, *state.moved}
        assert {request_id.decode() for request_id in moved} == set(state.moved)
        assert {request_id.decode(): int(number) for request_id, number in attempts.items()} == state.attempts
        assert {request_id.decode(): int(number) for request_id, number in excused.items()} == state.excused
        assert {request_id.decode(): end for request_id, end in cancels.items()} == state.cancels
        assert {int(account): float(tag) for account, tag in tags.items()} == state.tags
        assert virtual == state.virtual
        if self.requests:
            self.standing(self.requests[-1].id)

    @precondition(lambda self: self.requests)
    @rule()
    def look(self) -> None:
        self.both([gateway.depth() for gateway in self.gateways])
        ids = [one.id for one in self.requests]
        self.both([settler.missing(self.pool, ids) for settler in self.settlers])

    def teardown(self) -> None:
        try:
            for request_id in self.kept_ends - self.forgotten:
                events = self.both([self.read(gateway.events(request_id)) for gateway in self.gateways])
                assert events == ["lost"] or isinstance(events[-1][1], Ended)
        finally:
            for backend in self.backends:
                self.run(backend.close())
            self.runner.close()

    @staticmethod
    async def read(events: Any) -> list[Any]:
        try:
            async with asyncio.timeout(SOON_S):
                return [event async for event in events]
        except EventsLost:
            return ["lost"]


def _gist(move: Move | None) -> tuple[str, str, int, bool] | None:
    """Give all of a move but when it was made."""
    return move and (move.request.id, move.pool, move.attempt, move.lost)


def test_the_twins_agree(redis_url: str) -> None:
    """Hypothesis plays gateways, workers, settlers, time and mistakes against both."""
    run_state_machine_as_test(
        lambda: Twins(redis_url),
        settings=settings(
            max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
