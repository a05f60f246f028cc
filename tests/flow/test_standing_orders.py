"""What an operator ordered stands, whatever becomes of Redis."""

import asyncio
import re
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest
import redis

from gateway.admin.live.orders import Orders
from gateway.db.session import slow_engine
from gateway.errors import NotFound, Unavailable
from gateway.flow.orders import OrderKeeper
from gateway.ledger.audit import Actor
from gateway.queues.keys import keys_of
from gateway.queues.operators import Look
from gateway.queues.redis_queue import RedisQueues
from gateway.queues.redis_worker import RedisWorker
from gateway.stack.ports import free_port
from tests.admin.test_overview_page import signed_in
from tests.conformance.backends import status
from tests.system import System

ADA = Actor(name="ada", role="owner", door="dashboard")
POOL = "pool"


class Desk:
    """Orders over a real Postgres and a real Valkey, and two settlers that keep them."""

    def __init__(self, database_url: str, redis_url: str) -> None:
        self.engine = slow_engine(database_url)
        self.queues = RedisQueues(redis_url)
        self.worker = RedisWorker(redis_url, POOL)
        self.client = redis.Redis.from_url(redis_url)
        self.orders = Orders(self.engine, self.queues.operator, self.queues.pool)
        self.keepers = [OrderKeeper(self.engine, self.queues.operator, every_s=0.1) for _ in range(2)]
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> "Desk":
        self._tasks = [asyncio.create_task(keeper.run(self._stopping)) for keeper in self.keepers]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)
        await self.worker.close()
        await self.queues.close()
        await self.engine.dispose()
        self.client.close()

    async def look(self) -> Look:
        return await self.queues.operator(POOL).look(0)

    async def until(self, *, paused: bool, drained: frozenset[str] = frozenset()) -> None:
        """Wait until the pool stands so; a worker beats on meanwhile."""
        async with asyncio.timeout(60):
            while ((look := await self.look()).paused, look.drained) != (paused, drained):
                await self.worker.beat([], status("one"))
                await asyncio.sleep(0.05)


@pytest.fixture
async def desk(database_url: str, redis_url: str) -> AsyncIterator[Desk]:
    async with Desk(database_url, redis_url) as made:
        yield made


async def test_a_paused_pool_is_paused_when_redis_has_lost_everything(desk: Desk) -> None:
    assert (await desk.orders.pause(POOL, on=True, by=ADA)).new
    for _ in range(2):
        desk.client.flushall()
        await desk.until(paused=True)
    await desk.orders.pause(POOL, on=False, by=ADA)
    desk.client.flushall()
    await asyncio.gather(*(keeper.round() for keeper in desk.keepers))
    assert not (await desk.look()).paused


async def test_redis_that_comes_back_from_before_a_resume_is_told(desk: Desk) -> None:
    """As from a snapshot of its own that is older than the order."""
    await desk.orders.pause(POOL, on=True, by=ADA)
    await desk.orders.pause(POOL, on=False, by=ADA)
    await desk.queues.operator(POOL).pause(on=True)
    await desk.until(paused=False)


async def test_what_postgres_knows_nothing_of_is_left_alone(desk: Desk) -> None:
    await desk.queues.operator(POOL).pause(on=True)
    assert [await keeper.round() for keeper in desk.keepers] == [0, 0]
    assert (await desk.look()).paused


async def test_a_drained_worker_is_told_again_once_it_is_there_again(desk: Desk) -> None:
    await desk.worker.beat([], status("one"))
    await desk.orders.drain(POOL, "one", on=True, by=ADA)
    desk.client.flushall()
    assert await desk.keepers[0].round() == 0, "nobody is there to be told"
    await desk.until(paused=False, drained=frozenset({"one"}))
    assert (await desk.worker.beat([], status("one"))).drain
    await desk.orders.drain(POOL, "one", on=False, by=ADA)
    desk.client.flushall()
    await desk.until(paused=False)
    assert not (await desk.worker.beat([], status("one"))).drain


async def test_what_was_not_ordered_is_not_kept(desk: Desk, database_url: str) -> None:
    """Neither an order to nobody, nor one that was refused while Redis was away; and each that was is audited once."""
    with pytest.raises(NotFound):
        await desk.orders.drain(POOL, "nobody", on=True, by=ADA)
    away = RedisQueues(f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(Unavailable):
        await Orders(desk.engine, away.operator, away.pool).pause(POOL, on=True, by=ADA)
    await away.close()
    await desk.orders.pause(POOL, on=True, by=ADA)
    desk.client.flushall()
    await desk.until(paused=True)
    connection = await asyncpg.connect(database_url)
    kept = await connection.fetch("select pool, worker, stands, actor from pool_order")
    told = await connection.fetch("select action, object_id, actor from audit")
    await connection.close()
    assert [tuple(row) for row in kept] == [(POOL, "", True, "ada")]
    assert [tuple(row) for row in told] == [("pool.pause", POOL, "ada")]


def test_a_settler_of_a_running_system_pauses_a_pool_again(system: System) -> None:
    """Paused by the dashboard, forgotten by Redis, and paused again before anything is taken for long."""
    with signed_in(system) as operator, redis.Redis.from_url(system.redis_url) as client:

        def paused() -> bool:
            return bool(client.hexists(keys_of("fake").orders, ""))

        def ordered(verb: str) -> None:
            path = f"/admin/queues/pools/fake/{verb}"
            end = time.monotonic() + 60
            while (token := re.search(r'name="csrf_token" value="([^"]+)"', operator.get(path).text)) is None:
                assert time.monotonic() < end
            assert operator.post(path, data={"csrf_token": token[1]}).status_code == 200

        def until(wanted: bool) -> None:
            end = time.monotonic() + 60
            while paused() != wanted:
                assert time.monotonic() < end
                time.sleep(0.2)

        ordered("pause")
        try:
            assert paused()
            client.flushall()
            until(True)
        finally:
            ordered("resume")
        assert not paused()
        system.wait_ready("fake-chat")
