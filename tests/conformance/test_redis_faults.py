"""What only Redis can do to a queue: forget scripts, restart, lose everything, go silent, cut the line."""

import asyncio
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.crc import key_slot

from gateway.contract.events import Frame, TextDelta
from gateway.queues.keys import GROUP, keys_of
from gateway.queues.port import QueueUnavailable
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_worker import RedisWorker
from gateway.queues.replies import Replies
from gateway.queues.scripts import script
from gateway.stack import valkey
from gateway.stack.children import Child, await_ready, spawn, stop
from gateway.stack.errors import NotInstalled
from gateway.stack.ports import free_port
from tests.conformance.backends import POOL, SOON_S, InRedis, ended, request, status, stopped, until, waiting
from tests.conformance.proxy import Proxy
from tests.conftest import absent

KEYS = keys_of(POOL)


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(redis_url).running() as running:
        yield running


class Server:
    """A Valkey of this test's own, which it may kill."""

    def __init__(self, folder: Path, durable: bool) -> None:
        self.valkey = valkey.prepare(
            folder / "data", log=folder / "log", port=free_port(), password=secrets.token_hex(8), durable=durable
        )
        self.url = self.valkey.url()
        self.child: Child = self.valkey.child()
        self.start()

    def start(self) -> None:
        self.process: subprocess.Popen[bytes] = spawn(self.child)
        await_ready(self.process, self.child, self.valkey.ready, 60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            stop(self.process, self.child)


@pytest.fixture(params=[True, False], ids=["data kept", "data lost"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    try:
        server = Server(tmp_path, request.param)
    except NotInstalled as error:
        absent(error)
    yield server
    server.stop()


async def test_forgotten_scripts_are_loaded_again(in_redis: InRedis) -> None:
    gateway, worker, settler = in_redis.gateway(), in_redis.worker(), in_redis.settler()
    await gateway.enqueue(waiting(request()))
    in_redis.client.script_flush()
    assert await gateway.enqueue(waiting(request())) == 2
    in_redis.client.script_flush()
    taken = await worker.take(9, wait_s=0)
    in_redis.client.script_flush()
    assert await worker.finish([ended(one) for one in taken]) == []
    assert len(await settler.settlements([POOL], 9, wait_s=0)) == 1


async def test_a_killed_server_is_found_again(server: Server) -> None:
    """Commands in flight fail with one error; everything goes on when it is back, with or without its data."""
    backend = InRedis(server.url)
    gateway, worker, settler = backend.gateway(), backend.worker(), backend.settler()
    heard: list[Frame] = []
    gaps: list[None] = []
    await Replies(backend.queues.channels, "gateway", heard.append, lambda: gaps.append(None)).open()
    await gateway.enqueue(waiting(request()))
    [before] = await worker.take(1, wait_s=0)
    await gateway.enqueue(waiting(request()))
    await settler.settlements([POOL], 9, wait_s=0)
    if server.valkey.durable:
        backend.client.set("written after all that", "")
        assert backend.client.execute_command("WAITAOF", 1, 0, 60_000)[0] == 1
    sleeping = [asyncio.ensure_future(backend.worker("idle").take(1, wait_s=60))]
    sleeping.append(asyncio.ensure_future(settler.settlements(["idle"], 1, wait_s=60)))
    await asyncio.sleep(0.2)
    server.kill()
    for sleeper in sleeping:
        with pytest.raises(QueueUnavailable):
            await sleeper
    with pytest.raises(QueueUnavailable):
        await gateway.depth()
    server.start()
    await until(lambda: bool(gaps))
    kept = server.valkey.durable
    assert (await gateway.depth()).waiting == (1 if kept else 0)
    assert await worker.finish([ended(before)]) == ([] if kept else [before.request.id])
    await gateway.enqueue(waiting(request(reply="gateway")))
    taken = await worker.take(9, wait_s=SOON_S)
    assert await worker.finish([ended(one) for one in taken]) == []
    entries = await settler.settlements([POOL], 9, wait_s=SOON_S)
    assert {end.id for _, entry in entries for end in entry.ended} >= {one.request.id for one in taken}
    await until(lambda: len(heard) == 1)
    await backend.close()


async def test_settlements_go_on_after_redis_was_emptied(in_redis: InRedis) -> None:
    """The group is made again from the beginning, also under a settler that sleeps in a read."""
    gateway, worker, settler = in_redis.gateway(), in_redis.worker(), in_redis.settler()
    await settler.settlements([POOL], 9, wait_s=0)
    reading = asyncio.ensure_future(settler.settlements([POOL], 9, wait_s=120))
    await asyncio.sleep(0.1)
    in_redis.client.flushall()
    await gateway.enqueue(waiting(request()))
    [taken] = await worker.take(1, wait_s=SOON_S)
    await worker.finish([ended(taken)])
    [(_, entry)] = await asyncio.wait_for(reading, SOON_S)
    assert entry.ended[0].id == taken.request.id
    in_redis.client.flushall()
    one = request()
    assert await settler.missing(POOL, [one.id]) == {one.id: 0}
    await gateway.enqueue(waiting(one))
    [again] = await worker.take(1, wait_s=SOON_S)
    await worker.finish([ended(again)])
    assert len(await settler.settlements([POOL], 9, wait_s=SOON_S)) == 1


async def test_a_lease_lost_with_all_data_is_told_by_the_next_heartbeat(in_redis: InRedis) -> None:
    gateway, worker = in_redis.gateway(), in_redis.worker()
    await gateway.enqueue(waiting(request()))
    [taken] = await worker.take(1, wait_s=0)
    in_redis.client.flushall()
    assert (await worker.beat([taken.request.id], status())).lost == [taken.request.id]


async def test_an_end_whose_acknowledgement_was_lost_can_be_repeated(in_redis: InRedis, proxy: Proxy) -> None:
    """The repeat is no second settlement, no second reply, and not a lost fence."""
    gateway, settler, worker = in_redis.gateway(), in_redis.settler(), RedisWorker(proxy.url, POOL)
    heard: list[Frame] = []
    await in_redis.listen("gateway", heard.append)
    await gateway.enqueue(waiting(request(reply="gateway", keep=True), request()))
    first, second = await worker.take(2, wait_s=0)
    proxy.deaf = True
    finishing = asyncio.ensure_future(worker.finish([ended(first)]))
    await until(lambda: in_redis.client.xlen(KEYS.settlements) == 1)
    proxy.cut()
    proxy.deaf = False
    with pytest.raises(QueueUnavailable):
        await finishing
    assert await worker.finish([ended(first), ended(second)]) == []
    entries = await settler.settlements([POOL], 9, wait_s=1)
    assert [end.id for _, entry in entries for end in entry.ended] == [first.request.id, second.request.id]
    assert entries[0][1].ended[0].output is not None
    await until(lambda: bool(heard))
    assert len(heard) == len({frame.id for frame in heard})
    assert await worker.finish([ended(first)]) == [first.request.id]
    await worker.close()


async def test_an_end_that_never_arrived_is_fenced_when_it_comes_too_late(in_redis: InRedis, proxy: Proxy) -> None:
    gateway, settler = in_redis.gateway(), in_redis.settler()
    cut_off, other = RedisWorker(proxy.url, POOL), in_redis.worker()
    await gateway.enqueue(waiting(request()))
    [taken] = await cut_off.take(1, wait_s=0)
    proxy.cut()
    in_redis.expire(taken.request.id)
    await settler.sweep(POOL, 3)
    [again] = await other.take(1, wait_s=0)
    assert await finish_at_last(cut_off, taken) == [taken.request.id]
    assert await other.finish([ended(again)]) == []
    await cut_off.close()


async def finish_at_last(worker: RedisWorker, taken: object) -> list[str]:
    """Repeat until Redis answers, as a worker does."""
    while True:
        try:
            return await worker.finish([ended(taken)])  # type: ignore[arg-type]
        except QueueUnavailable:
            await asyncio.sleep(0.02)


async def test_lost_replies_are_told_as_a_gap(in_redis: InRedis, proxy: Proxy) -> None:
    gateway, worker = in_redis.gateway(), in_redis.worker()
    heard: list[Frame] = []
    gaps: list[None] = []
    away = RedisQueues(proxy.url)
    await Replies(away.channels, "gateway", heard.append, lambda: gaps.append(None)).open()
    await gateway.enqueue(waiting(request(reply="gateway", stream=True)))
    [taken] = await worker.take(1, wait_s=0)
    proxy.cut()
    await worker.emit([(taken.request, Frame(taken.request.id, 1, 0, TextDelta("lost")))])
    await until(lambda: bool(gaps))
    await worker.finish([ended(taken)])
    await until(lambda: bool(heard))
    assert heard[0].seq == 1, "the end tells that there was a delta"
    await away.close()


async def test_a_message_that_cannot_be_read_is_told_as_a_gap(in_redis: InRedis) -> None:
    gaps: list[None] = []
    await Replies(in_redis.queues.channels, "gateway", lambda _: None, lambda: gaps.append(None)).open()
    in_redis.client.publish("fg:reply:gateway", b"\xc1")
    await until(lambda: bool(gaps))


async def test_an_entry_that_cannot_be_read_stays_and_stops_nothing(in_redis: InRedis) -> None:
    gateway, worker, settler = in_redis.gateway(), in_redis.worker(), in_redis.settler()
    in_redis.client.xadd(KEYS.settlements, {"ended": b"\xc1"})
    await gateway.enqueue(waiting(request()))
    [taken] = await worker.take(1, wait_s=0)
    await worker.finish([ended(taken)])
    [(pool, entry)] = await settler.settlements([POOL], 9, wait_s=0)
    await settler.settled([(pool, entry.entry)])
    assert (await gateway.depth()).settling == 1


async def test_a_request_that_cannot_be_read_harms_no_other(in_redis: InRedis) -> None:
    """It is given up like any poison, and does not stop the sweeper's look for what is lost."""
    gateway, worker, settler = in_redis.gateway(), in_redis.worker(), in_redis.settler()
    good, bad = request(), request()
    await gateway.enqueue(waiting(bad, good))
    in_redis.client.hset(KEYS.jobs, bad.id, b"\xc1")
    assert [taken.request.id for taken in await worker.take(9, wait_s=0)] == [good.id]
    in_redis.expire(bad.id)
    assert (await settler.sweep(POOL, 1)).given_up == [bad.id]
    assert await settler.settlements([POOL], 9, wait_s=0) == []
    assert await settler.missing(POOL, [good.id, bad.id]) == {bad.id: 0}


async def test_the_sweep_wakes_takers_when_a_worker_died_with_the_wake_up(in_redis: InRedis) -> None:
    gateway, worker = in_redis.gateway(), in_redis.worker()
    await gateway.enqueue(waiting(request()))
    in_redis.client.delete(KEYS.wake)
    taking = asyncio.ensure_future(worker.take(1, wait_s=0))
    await taking
    await gateway.enqueue(waiting(request(), request()))
    in_redis.client.delete(KEYS.wake)
    await in_redis.settler().sweep(POOL, 3)
    assert in_redis.client.llen(KEYS.wake) == 1


async def test_nothing_is_left_when_all_is_settled(in_redis: InRedis) -> None:
    """After ends, fences, cancellations, poison and giving back, no key of a request remains but expiring logs."""
    gateway, worker, settler = in_redis.gateway(), in_redis.worker(), in_redis.settler()
    requests = [request(account, keep=account % 2 == 0) for account in range(12)]
    await gateway.enqueue(waiting(*requests))
    taken = await worker.take(8, wait_s=0)
    await worker.give_back([taken[0].request.id])
    in_redis.expire(taken[1].request.id, taken[2].request.id)
    await gateway.cancel(stopped(taken[2].request))
    await gateway.cancel(stopped(taken[3].request))
    await settler.sweep(POOL, 1)
    await worker.finish([ended(one) for one in taken[3:]])
    await gateway.cancel(stopped(requests[11]))
    await worker.finish([ended(one) for one in await worker.take(99, wait_s=0)])
    while entries := await settler.settlements([POOL], 99, wait_s=0):
        await settler.settled([(pool, entry.entry) for pool, entry in entries])
    await settler.sweep(POOL, 1)
    logs = [key for key in in_redis.client.keys("*") if b":events:" in key]
    assert all(0 < in_redis.client.ttl(key) <= 3600 for key in logs)
    left = set(in_redis.client.keys("*")) - set(logs)
    assert left <= {KEYS.settlements, KEYS.wake, KEYS.tally}
    assert in_redis.client.xlen(KEYS.settlements) == 0
    assert in_redis.client.xpending(KEYS.settlements, GROUP)["pending"] == 0


async def test_tags_of_past_accounts_are_dropped_while_the_queue_never_empties(in_redis: InRedis) -> None:
    gateway, worker, settler = in_redis.gateway(), in_redis.worker(), in_redis.settler()
    for start in range(0, 3000, 100):
        await gateway.enqueue(waiting(*(request(account) for account in range(start, start + 100))))
        await worker.take(90, wait_s=0)
    assert in_redis.client.hlen(KEYS.tags) > 3000
    for _ in range(20):
        await settler.sweep(POOL, 3)
    assert in_redis.client.hlen(KEYS.tags) < 1000


async def test_long_gone_workers_are_forgotten(in_redis: InRedis) -> None:
    worker, settler = in_redis.worker(), in_redis.settler()
    await worker.beat([], status("alive"))
    in_redis.client.hset(KEYS.workers, "dead", b"1000 anything")
    await settler.sweep(POOL, 3)
    assert in_redis.client.hkeys(KEYS.workers) == [b"alive"]


async def test_a_long_gone_settler_is_forgotten_unless_it_left_something(in_redis: InRedis) -> None:
    gateway, worker = in_redis.gateway(), in_redis.worker()
    await gateway.enqueue(waiting(request(), request()))
    idle, left = in_redis.settler("idle"), in_redis.settler("left")
    for settler, taken in zip((idle, left), await worker.take(2, wait_s=0), strict=True):
        await worker.finish([ended(taken)])
        entries = await settler.settlements([POOL], 9, wait_s=1)
        assert len(entries) == 1
        if settler is idle:
            await settler.settled([(pool, entry.entry) for pool, entry in entries])
    await asyncio.sleep(0.1)
    touched = (KEYS.tags, KEYS.workers, KEYS.settlements, KEYS.moved, KEYS.jobs, KEYS.cancels)
    await in_redis.queues.wire.run(script("tidy"), touched, "0", GROUP, 50)
    consumers = in_redis.client.xinfo_consumers(KEYS.settlements, GROUP)
    assert [consumer["name"] for consumer in consumers] == [b"left"]


async def test_missing_does_not_answer_when_too_much_is_unsettled(in_redis: InRedis) -> None:
    pipeline = in_redis.client.pipeline()
    for _ in range(10_001):
        pipeline.xadd(KEYS.settlements, {"ended": b"\x90"})
    pipeline.execute()
    assert await in_redis.settler().missing(POOL, [request().id]) is None


async def test_a_full_redis_is_unavailable_and_loses_nothing(in_redis: InRedis) -> None:
    gateway, worker = in_redis.gateway(), in_redis.worker()
    await gateway.enqueue(waiting(request()))
    in_redis.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(QueueUnavailable):
            await gateway.enqueue(waiting(request()))
        [taken] = await worker.take(1, wait_s=0)
        with pytest.raises(QueueUnavailable):
            await worker.finish([ended(taken)])
    finally:
        in_redis.client.config_set("maxmemory", "0")
    assert await worker.finish([ended(taken)]) == []
    assert (await gateway.depth()).waiting == 0


def test_the_tag_keeps_a_pools_keys_in_one_slot() -> None:
    assert len({key_slot(key) for key in (*slotted(), KEYS.events("req_x"))}) == 1


def slotted() -> list[bytes]:
    """List a pool's keys."""
    return [getattr(KEYS, name) for name in KEYS.__struct_fields__]
