"""The page Queues & workers: what waits and who works, live, and what operators may do about it."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.live.orders import Orders
from gateway.admin.live.sampler import Sampler, Sampling
from gateway.admin.pages.queues import PAGES
from gateway.catalog.model import Pool, Snapshot
from gateway.contract.ids import uuid_of
from gateway.contract.pools import ModelState, WorkerStatus, WorkerTimes
from gateway.contract.request import Request
from gateway.db.session import slow_engine
from gateway.flow.floor import Floor
from gateway.queues.histories import MemoryHistories
from gateway.queues.memory import MemoryQueues
from gateway.queues.operators import Look
from gateway.queues.port import QueueUnavailable
from gateway.routing.backlog import Backlog
from gateway.routing.estimate import Estimates
from gateway.routing.outlook import Outlook
from tests.admin.conftest import SiteHouse, site_house, token_of
from tests.conformance.backends import request, waiting

CATALOG = Snapshot(
    revision=1, models={}, pools={"text": Pool(name="text", engine="fake")}, prices={}, model_names={1: "scribe"}
)


class Away:
    """An operators' side whose Redis can go away."""

    def __init__(self, hall: "Hall", pool: str) -> None:
        self._hall = hall
        self._side = hall.queues.operator(pool)

    async def look(self, most: int) -> Look:
        self._hall.check()
        return await self._side.look(most)

    async def pause(self, *, on: bool) -> bool:
        self._hall.check()
        return await self._side.pause(on=on)

    async def drain(self, worker: str, *, on: bool) -> bool | None:
        self._hall.check()
        return await self._side.drain(worker, on=on)


class Hall:
    """Queues in memory, Postgres, and the dashboard over both."""

    def __init__(self, engine: AsyncEngine) -> None:
        now_us = time.time_ns() // 1000
        self.engine = engine
        self.queues = MemoryQueues(lambda: now_us)  # it stands: no worker falls silent while a page is drawn slowly
        self.away = False
        estimates = Estimates(Outlook())
        floor = Floor("g", lambda: CATALOG, self.queues.pool, Backlog(), estimates, MemoryHistories())
        operator = self.operator
        self.sampler = Sampler(
            Sampling(catalog=lambda: CATALOG, operator=operator, floor=floor, estimates=estimates, engine=engine)
        )
        self.orders = Orders(engine, operator, self.queues.pool)
        self.house: SiteHouse

    def operator(self, pool: str) -> Away:
        return Away(self, pool)

    def check(self) -> None:
        if self.away:
            raise QueueUnavailable("away on purpose")

    async def beat(self, name: str = "w1", *, running: int = 0, draining: bool = False) -> bool:
        """Give a worker's heartbeat; answers whether it is told to take no more."""
        status = WorkerStatus(
            worker=name,
            pool="text",
            engine="fake",
            pid=1,
            version="1.2.3",
            models={"scribe": ModelState(state="ready")},
            capacity=8,
            running=running,
            memory_bytes=3 * 2**20,
            draining=draining,
            times=WorkerTimes(up_ms=1000, load_ms=100, busy_ms=250),
        )
        return (await self.queues.worker("text").beat([], status)).drain

    async def wait(self, *accounts: str) -> list[Request]:
        """Let a request of each account wait."""
        placed: list[Request] = []
        for name in accounts:
            async with self.engine.begin() as connection:
                account = (await connection.execute(_ACCOUNT, {"name": name})).scalar_one()
                one = request(account)
                row = {"id": uuid_of(one.id), "account": account}
                await connection.execute(_OPEN, row)
            placed.append(one)
            await self.queues.pool("text").enqueue(waiting(one))
        return placed

    async def told(self) -> Sequence[str]:
        """Give what the audit log says of queues and workers."""
        async with self.engine.connect() as connection:
            rows = await connection.execute(text("select action, object_id, actor from audit order by id"))
            return [f"{row.action} {row.object_id} {row.actor}" for row in rows if "session" not in row.action]


_ACCOUNT = text("insert into account (name) values (:name) on conflict (name) do update set name = :name returning id")
_OPEN = text(
    "insert into open_request (id, account_id, api_key_id, hold_nanos, deadline_at, model_id, price_version_id, task,"
    " keep, pool, gateway) values (:id, :account, 1, 30000000, now() + interval '1 h', 1, 1, 0, false, 'text', 'g')"
)


@pytest.fixture
async def hall(database_url: str) -> AsyncIterator[Hall]:
    engine = slow_engine(database_url)
    made = Hall(engine)
    async with site_house(database_url, PAGES, given={"sampler": made.sampler, "orders": made.orders}) as house:
        made.house = house
        yield made
    await engine.dispose()


async def post(client: httpx.AsyncClient, path: str) -> httpx.Response:
    """Send the form that a confirmation shows, as a browser does."""
    return await client.post(path, data={"csrf_token": token_of((await client.get(path)).text)})


async def test_the_page_shows_who_waits_in_fair_order_and_who_works(hall: Hall) -> None:
    await hall.beat("w1", running=2)
    flood = await hall.wait("Acme", "Acme", "Acme", "Initech")
    async with hall.house.operator("viewer") as client:
        page = (await client.get("/admin/queues")).text
        for words in ("text", "serving", "2 of 8", "3.0 MiB", "1.2.3", "load 10%, work 25%", "Acme", "Initech"):
            assert words in page
        assert flood[0].id in page
        told = (await client.get("/admin/queues.json")).json()["pools"][0]
        assert (told["waiting"], told["running"], told["capacity"]) == (4, 0, 8)
        tenants = {tenant["name"]: tenant for tenant in told["tenants"]}
        assert (tenants["Acme"]["waiting"], tenants["Initech"]["waiting"]) == (3, 1)
        assert tenants["Initech"]["position"] <= 1, "one request does not wait for the flood before it"
        assert tenants["Initech"]["share_percent"] == 25
        assert "pool,engine,paused,waiting" in (await client.get("/admin/queues.csv")).text
        assert "This needs the role owner" in page, "a viewer sees why the buttons are closed"
        assert (await client.get("/admin/queues/pools/text/pause")).status_code == 403


async def test_a_pool_is_paused_and_goes_on(hall: Hall) -> None:
    await hall.beat("w1", running=1)
    [one] = await hall.wait("Acme")
    async with hall.house.operator() as client:
        asked = (await client.get("/admin/queues/pools/text/pause")).text
        assert "0 running finish, none is taken." in asked
        assert (await post(client, "/admin/queues/pools/text/pause")).status_code == 303
        assert await hall.queues.worker("text").take(1, wait_s=0) == []
        assert (await post(client, "/admin/queues/pools/text/resume")).status_code == 303
        [taken] = await hall.queues.worker("text").take(1, wait_s=0)
        assert taken.request.id == one.id
        assert (await client.get("/admin/queues/pools/nowhere/pause")).status_code == 404
    assert await hall.told() == ["pool.pause text admin key", "pool.resume text admin key"]


async def test_a_worker_is_drained_and_taken_back(hall: Hall) -> None:
    await hall.beat("w1", running=3)
    async with hall.house.operator() as client:
        asked = (await client.get("/admin/queues/workers/w1/drain")).text
        assert "3 running finish, none is taken." in asked
        assert "No other worker of text is there" in asked
        await post(client, "/admin/queues/workers/w1/drain")
        assert await hall.beat("w1", running=3)
        await hall.beat("w1", running=3, draining=True)
        await asyncio.sleep(1.1)  # a look is as old as a second
        page = (await client.get("/admin/queues")).text
        assert "draining" in page
        assert "Undo drain" in page
        await post(client, "/admin/queues/workers/w1/undrain")
        assert not await hall.beat("w1", running=3)
        assert (await client.get("/admin/queues/workers/nobody/drain")).status_code == 404
    assert await hall.told() == ["worker.drain w1 admin key", "worker.undrain w1 admin key"]


async def test_a_request_is_cancelled(hall: Hall) -> None:
    [one] = await hall.wait("Acme")
    path = f"/admin/queues/requests/{one.id}/cancel"
    async with hall.house.operator() as client:
        assert "$0.03 go back" in (await client.get(path)).text
        assert (await post(client, path)).status_code == 303
        assert (await hall.queues.pool("text").standing(one.id)).state == "absent"
        for wrong in ("req_0", "req_" + "0" * 32):
            assert (await client.get(f"/admin/queues/requests/{wrong}/cancel")).status_code == 404
    assert await hall.told() == [f"request.cancel {one.id} admin key"]


async def test_while_redis_is_away_the_last_look_stays_and_no_order_is_noted(hall: Hall) -> None:
    await hall.beat("w1")
    async with hall.house.operator() as client:
        assert "Redis is away" not in (await client.get("/admin/queues")).text
        form = {"csrf_token": token_of((await client.get("/admin/queues/pools/text/pause")).text)}
        hall.away = True
        await asyncio.sleep(1.1)
        page = (await client.get("/admin/queues")).text
        assert "Redis is away" in page
        assert "data-stale" in page
        assert "w1" in page
        refused = await client.post("/admin/queues/pools/text/pause", data=form)
        assert refused.status_code == 503
    assert await hall.told() == [], "what was not done is not noted"


async def test_a_thousand_viewers_cost_one_look_a_second_and_none_costs_nothing(hall: Hall) -> None:
    await hall.beat("w1")
    written = 0

    def write(_: object) -> str:
        nonlocal written
        written += 1
        return "page"

    async def watch() -> None:
        seen = 0
        looks = hall.sampler.follow()
        async for snapshot in looks:
            hall.sampler.written(snapshot, "owner", write)
            seen += 1
            if seen == 2:
                break
        await looks.aclose()

    before = hall.sampler.looks
    async with asyncio.timeout(120):
        await asyncio.gather(*(watch() for _ in range(1000)))
    assert hall.sampler.viewers == 0
    spent = hall.sampler.looks - before
    assert spent <= 4
    assert written <= spent
    await asyncio.sleep(1.5)
    assert hall.sampler.looks - before == spent, "nobody watches, so nobody looks"


async def test_the_stream_holds_nobodys_token_and_no_attributes_of_htmx(hall: Hall) -> None:
    """It is written once for all viewers of a role."""
    await hall.beat("w1")
    await hall.wait("Acme")
    async with hall.house.operator() as client:
        page = (await client.get("/admin/queues")).text
        live = page[page.index('id="live-body"') : page.index("</main>")]
        assert "hx-" not in live
        assert "csrf" not in live
        assert "data-dialog" in live
