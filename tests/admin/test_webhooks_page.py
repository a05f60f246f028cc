"""The page Webhooks: how receivers fare, every try, telling again, a test, a new secret."""

import csv
import io
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.webhooks import PAGES
from gateway.contract.ids import new_request_id, uuid_of
from gateway.db.session import slow_engine
from gateway.net.addresses import Allowed
from gateway.webhooks.deliveries import Deliveries
from gateway.webhooks.secrets import Secrets
from gateway.webhooks.trial import Trials
from tests.admin.conftest import SiteHouse, site_house, token_of
from tests.webhooks.receiver import Receiver

_ACCOUNT = text("insert into account (name) values (:name) on conflict (name) do update set name = :name returning id")
_EVENT = text(
    "insert into webhook_event (request_id, kind, number, account_id, url, host, due_at, delivered_at, tries, round)"
    " values (:id, 2, 0, :account, :url, webhook_host(:url), case when :state = 'pending' then now() end,"
    " case when :state = 'delivered' then now() end, 1, 11)"
)
_TRY = text(
    "insert into webhook_delivery (request_id, kind, number, try, status, took_ms, error)"
    " values (:id, 2, 0, 1, :status, :took, :error)"
)


class Post:
    """Webhooks in Postgres, and the dashboard over them."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.house: SiteHouse

    async def account(self, name: str = "Acme") -> int:
        async with self.engine.begin() as connection:
            return int((await connection.execute(_ACCOUNT, {"name": name})).scalar_one())

    async def told(self, state: str, url: str = "https://a.example/hook", name: str = "Acme") -> str:
        """Make an event in a state, with one try; answers its id."""
        request_id, account = uuid_of(new_request_id()), await self.account(name)
        good = state == "delivered"
        given: dict[str, Any] = {"id": request_id, "account": account, "url": url, "state": state}
        tried = {"id": request_id, "status": 200 if good else 503, "took": 40, "error": "" if good else "answered 503"}
        async with self.engine.begin() as connection:
            await connection.execute(_EVENT, given)
            await connection.execute(_TRY, tried)
        return f"evt_{request_id.hex}-completed"

    async def audited(self) -> list[str]:
        async with self.engine.connect() as connection:
            return list((await connection.execute(text("select action from audit order by id"))).scalars())


@pytest.fixture
async def post(database_url: str) -> AsyncIterator[Post]:
    engine = slow_engine(database_url)
    made = Post(engine)
    given = {
        "deliveries": Deliveries(engine),
        "signing": Secrets(engine),
        "trials": Trials(engine, Allowed.parse("127.0.0.1"), 60.0),
    }
    async with site_house(database_url, PAGES, given=given) as house:
        made.house = house
        yield made
    await engine.dispose()


async def sent(client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """Send the form that a confirmation shows, as a browser does."""
    token = token_of((await client.get(path, params=fields)).text)
    return await client.post(path, data={"csrf_token": token, **fields})


async def test_receivers_are_shown_with_how_they_fare_the_longest_waiting_first(post: Post) -> None:
    await post.told("delivered")
    await post.told("given_up")
    waiting = await post.told("pending", "https://b.example/x", "Initech")
    async with post.house.operator("viewer") as client:
        page = (await client.get("/admin/webhooks")).text
        assert page.index("b.example") < page.index("a.example")
        for words in ("50.0%", "40 ms", "Initech", "answered 503", "3 of 3 events", waiting):
            assert words in page
        assert "This needs the role owner" in page


async def test_deliveries_are_filtered_and_read_as_data(post: Post) -> None:
    good, bad = await post.told("delivered"), await post.told("given_up", "https://b.example/x", "Initech")
    async with post.house.operator() as client:

        async def told(**query: str) -> list[str]:
            found = (await client.get("/admin/webhooks.json", params=query)).json()
            return [delivery["id"] for delivery in found["deliveries"]]

        assert await told() == [bad, good]
        assert await told(state="given_up") == [bad]
        assert await told(host="A.example") == [good]
        assert await told(account=str(await post.account("Initech"))) == [bad]
        assert await told(after=bad) == [good]
        rows = list(csv.DictReader(io.StringIO((await client.get("/admin/webhooks.csv")).text)))
        assert [row["state"] for row in rows] == ["given_up", "delivered"]
        assert (await client.get("/admin/webhooks?state=lost")).status_code == 400
        assert (await client.get("/admin/webhooks?request=nonsense")).status_code in (200, 404)


async def test_one_event_is_told_again_and_the_log_says_who_wanted_it(post: Post) -> None:
    bad = await post.told("given_up")
    async with post.house.operator("billing") as client:
        path = f"/admin/webhooks/deliveries/{bad}"
        assert "answered 503" in (await client.get(path)).text
        assert (await sent(client, f"{path}/redeliver")).status_code == 303
        assert "pending" in (await client.get(path)).text
        assert (await client.get("/admin/webhooks/deliveries/evt_0")).status_code == 404
    assert "webhook.redeliver" in await post.audited()


async def test_all_that_match_are_told_again_and_no_other(post: Post) -> None:
    bad = [await post.told("given_up") for _ in range(3)]
    other = await post.told("given_up", "https://b.example/x")
    async with post.house.operator() as client:
        asked = (await client.get("/admin/webhooks/redeliver", params={"host": "a.example"})).text
        assert "3 events match (host a.example)." in asked
        assert (await sent(client, "/admin/webhooks/redeliver", host="a.example")).status_code == 303
        pending = (await client.get("/admin/webhooks.json?state=pending")).json()["deliveries"]
        assert {one["id"] for one in pending} == set(bad)
        assert other not in {one["id"] for one in pending}
    assert "webhook.redeliver_all" in await post.audited()


async def test_a_test_is_signed_sent_and_answered_for(post: Post) -> None:
    account = await post.account()
    async with Receiver() as receiver, post.house.operator() as client:
        path = f"/admin/webhooks/accounts/{account}/test"
        assert (await sent(client, path, url=receiver.url)).status_code == 303
        [heard] = receiver.posts
        assert heard.told["type"] == "webhook.test"
        assert heard.headers["webhook-signature"].startswith("v1,")
        assert "The test arrived: 200" in (await client.get("/admin/webhooks")).text
        refused = await sent(client, path, url="file:///etc/passwd")
        assert refused.status_code == 422
        await sent(client, path, url="http://10.0.0.1/hook")
        assert "url_not_allowed" in (await client.get("/admin/webhooks")).text
    assert (await post.audited()).count("webhook.test") == 2


async def test_a_secret_is_rotated_by_an_owner_alone_and_shown_once(post: Post) -> None:
    account = await post.account()
    path = f"/admin/webhooks/accounts/{account}/rotate"
    async with post.house.operator("billing") as client:
        assert (await client.get(path)).status_code == 403
    async with post.house.operator() as client:
        shown = await sent(client, path)
        assert "whsec_" in shown.text
        assert shown.headers["cache-control"] == "no-store"
        assert "whsec_" not in (await client.get("/admin/webhooks")).text
    assert "webhook_secret.rotate" in await post.audited()
