"""Models and their prices over HTTP: listed, drafted, backtested, published, called off, reinstated."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from gateway.app.create import create_app
from gateway.catalog.load import load
from gateway.catalog.store import apply
from gateway.db.session import slow_engine
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.audit import Actor
from gateway.ledger.prices.records import Draft, Publication
from gateway.ledger.prices.store import PriceStore
from gateway.pricing.policy import OutcomePolicy
from gateway.pricing.price import PriceComponent
from gateway.reports.backtest.runner import BacktestRunner
from gateway.settings import Settings
from tests.admin.conftest import sign_in, token_of
from tests.ledger.scene import Scene
from tests.reports.test_own_usage import living

ADMIN_KEY = "an-admin-key-of-some-length"
VIEWER_KEY = "a-viewer-key-of-some-length"
CATALOG = b"""
pools:
  fake: {engine: fake}
models:
  talker:
    tasks: [chat]
    description: Talks.
    context_tokens: 4096
    price:
      - {usd: 0.15, per: 1M input tokens}
      - {usd: 0.60, per: 1M output tokens}
    routes: [{pool: fake}]
  lab/painter:
    tasks: [text-to-image]
    description: Paints.
    parameters:
      quality: {type: string, default: low, choices: [low, high], priced: true}
    routes: [{pool: fake}]
"""
DRAFT = {
    "model": "talker",
    "usd": ["0.30", "0.60"],
    "per": ["1M input tokens", "1M output tokens"],
    "when": ["", ""],
}


ADA = Actor(name="Ada", role="owner", door="cli")


class House:
    """A gateway with a signed-in operator, and the database behind it."""

    def __init__(self, database_url: str, client: httpx.AsyncClient) -> None:
        self.database_url = database_url
        self.client = client
        self.engine = slow_engine(database_url)
        self.prices = PriceStore(self.engine)

    async def get(self, path: str, status: int = 200, **query: object) -> str:
        """Read a page."""
        answer = await self.client.get(path, params=query)  # type: ignore[arg-type]  # lists are repeated fields
        assert answer.status_code == status, answer.text.partition("<main")[2]
        return answer.text

    async def post(self, path: str, status: int = 303, **form: object) -> httpx.Response:
        """Send a form with its token."""
        token = token_of(await self.get("/admin/models"))
        answer = await self.client.post(path, data={"csrf_token": token, **form})
        assert answer.status_code == status, answer.text.partition("<main")[2]
        return answer


@pytest.fixture
async def house(database_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[House]:
    engine = slow_engine(database_url)
    await apply(engine, load(CATALOG, "catalog.yaml"), source="catalog.yaml")
    await engine.dispose()
    app = create_app(
        Settings(
            database_url=database_url,
            redis_url=redis_url,
            admin_key=ADMIN_KEY,
            viewer_key=VIEWER_KEY,
            blob_url=str(tmp_path / "blobs"),
        )
    )
    async with living(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        await sign_in(client, ADMIN_KEY)
        made = House(database_url, client)
        yield made
        await made.engine.dispose()


async def test_models_without_a_price_come_first(house: House) -> None:
    page = await house.get("/admin/models")
    assert page.index("lab/painter") < page.index(">talker<")
    assert "no price" in page
    assert "$0.15 per 1M input tokens" in page
    only = await house.get("/admin/models", task="chat")
    assert "lab/painter" not in only
    data = (await house.client.get("/admin/models.json")).json()["models"]
    assert [row["model"] for row in data] == ["lab/painter", "talker"]
    csv = await house.get("/admin/models.csv", q="talk")
    assert csv.splitlines()[1].startswith("talker,chat,")


async def test_a_draft_is_shown_against_what_is_in_force(house: House) -> None:
    page = await house.get("/admin/models/talker")
    assert 'value="0.15"' in page
    assert "Version" in page
    part = await house.get("/admin/prices/outcome", **DRAFT)
    assert "$0.00045" in part  # 1,000 input tokens at 0.15 and 500 output tokens at 0.60, per million
    assert "$0.0006" in part
    assert "<span>price per 1M input tokens</span> <del>$0.15</del> → <ins>$0.30</ins> <span>+100%</span>" in part
    assert "<html" not in part


async def test_a_price_is_published_with_a_reason_and_stands_in_the_history(house: House) -> None:
    question = await house.get("/admin/prices/publish", **DRAFT)
    assert "From now" in question
    assert "No backtest" in question
    refused = await house.post("/admin/prices/publish", 422, **DRAFT)
    assert "Say why" in refused.text
    answer = await house.post("/admin/prices/publish", **DRAFT, reason="dearer cards")
    assert answer.headers["location"] == "/admin/models/talker"
    (now, before) = await house.prices.history("talker")
    assert (now.rows[0].picos, now.door, now.author, now.reason) == (300_000, "dashboard", "admin key", "dearer cards")
    assert before.state == "past"
    page = await house.get("/admin/models/talker")
    assert "dearer cards" in page
    assert "Audit entry" in page


async def test_what_is_wrong_is_marked_where_it_stands(house: House) -> None:
    wrong = {**DRAFT, "usd": ["a lot", "0.60"], "when": ["", "colour"]}
    page = await house.get("/admin/models/talker", **wrong)
    assert 'id="f-usd-0" name="usd" value="a lot"' in page
    assert "A decimal of US dollars" in page
    assert "Expected for colour" in page
    await house.get("/admin/prices/publish", 422, **wrong)
    images = await house.get("/admin/models/talker", model="talker", usd="1", per="image", when="")
    assert "prices for what its tasks measure" in images


async def test_zero_is_published_only_on_purpose(house: House) -> None:
    free = {**DRAFT, "usd": ["0", "0"], "reason": "a gift"}
    refused = await house.post("/admin/prices/publish", 422, **free)
    assert "free on purpose" in refused.text.lower()
    await house.post("/admin/prices/publish", **free, free="1")
    assert "free on purpose" in await house.get("/admin/models")


async def test_who_comes_second_sees_both_differences(house: House) -> None:
    base = (await house.prices.history("talker"))[0].id
    await house.post("/admin/prices/publish", **DRAFT, reason="first", base=base)
    second = {**DRAFT, "usd": ["0.15", "0.90"]}
    conflict = await house.post("/admin/prices/publish", 409, **second, reason="second", base=base)
    assert "<span>price per 1M input tokens</span> <del>$0.15</del> → <ins>$0.30</ins>" in conflict.text
    assert "<span>price per 1M output tokens</span> <del>$0.60</del> → <ins>$0.90</ins>" in conflict.text


async def test_a_scheduled_price_is_called_off_and_an_old_one_reinstated(house: House) -> None:
    at = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d %H:%M}"
    await house.post("/admin/prices/publish", **DRAFT, reason="soon", at=at)
    scheduled = (await house.prices.history("talker"))[0]
    assert scheduled.state == "scheduled"
    assert "talker" in await house.get("/admin/models", scheduled="yes")
    assert "would have cost" in await house.get(f"/admin/prices/{scheduled.id}/cancel")
    await house.post(f"/admin/prices/{scheduled.id}/cancel", reason="too soon")
    assert (await house.prices.history("talker"))[0].state == "cancelled"
    await house.post("/admin/prices/publish", **DRAFT, reason="now")
    old = (await house.prices.history("talker"))[-1]
    await house.post(f"/admin/prices/{old.id}/reinstate", base="")
    now = next(each for each in await house.prices.history("talker") if each.state == "in_force")
    assert now.rows == old.rows


async def test_a_list_has_prices_of_its_own_and_conditions_stand_in_the_form(house: House) -> None:
    await house.post("/admin/prices/lists/new", 422, name="Not A Name")
    await house.post("/admin/prices/lists/new", name="partners")
    rows = {"usd": ["0.08", "0.02"], "per": ["image", "image"], "when": ["quality: high", ""]}
    await house.post("/admin/prices/publish", model="lab/painter", **rows, list="partners", reason="a deal")
    page = await house.get("/admin/models/lab/painter", list="partners")
    assert 'value="quality: high"' in page
    assert "/admin/models/lab/painter?list=partners" in await house.get("/admin/prices/lists/partners")
    (price,) = await house.prices.history("lab/painter", "partners")
    assert price.rows[0].words == "quality high"


async def test_what_other_outcomes_cost_is_drafted_published_and_told(house: House) -> None:
    same = {**DRAFT, "usd": ["0.15", "0.60"]}
    page = await house.get("/admin/models/talker")
    assert re.search(r'<select id="f-cancelled".*?<option value="produced" selected>', page, re.DOTALL)
    part = await house.get("/admin/prices/outcome", **same, failed="full", cancelled="nonsense")
    assert "<del>nothing</del> → <ins>all that was held</ins>" in part
    assert "If it is cancelled</td>" in part
    question = await house.get("/admin/prices/publish", **same, failed="full")
    assert "If it fails: nothing → all that was held" in question
    await house.post("/admin/prices/publish", **same, failed="full", reason="broken prompts cost us too")
    (now, before) = await house.prices.history("talker")
    assert (now.outcome, before.outcome) == (OutcomePolicy(failed="full"), OutcomePolicy())
    assert now.rows == before.rows
    history = (await house.get("/admin/models/talker")).partition('id="history"')[2]
    assert "<span>If it fails</span> <del>nothing</del> → <ins>all that was held</ins>" in history
    await house.post("/admin/prices/publish", **same, expired="nothing", failed="full", reason="kind", base=now.id)
    second = {**same, "failed": "produced", "base": now.id, "reason": "late"}
    conflict = await house.post("/admin/prices/publish", 409, **second)
    assert "<span>If its time runs out</span> <del>what was made</del>" in conflict.text
    assert "<ins>what was made</ins>" in conflict.text


async def test_the_history_is_a_strip_and_a_table_that_goes_on(house: House) -> None:
    for number in range(22):
        new = Draft(rows=(PriceComponent("input_token", 100_000 + number),))
        await house.prices.publish(Publication(model="talker", draft=new, reason=f"step {number:02}"), ADA)
    at = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d %H:%M}"
    await house.post("/admin/prices/publish", **DRAFT, reason="soon", at=at)
    page = await house.get("/admin/models/talker")
    strip = page.partition('class="strip"')[2].partition("</ol>")[0]
    assert re.findall(r'data-state="(\w+)"', strip) == ["past"] * 6 + ["in_force", "scheduled"]
    assert "16 earlier" in strip
    assert "dashboard" in page
    assert "API or command" in page
    link = re.search(r'rel="next" href="([^"]*)"', page)
    assert link is not None
    rest = (await house.client.get(link[1].replace("&amp;", "&"))).text
    seen = [re.findall(r"step \d\d", text.partition("<table data-rows>")[2]) for text in (page, rest)]
    assert sorted({*seen[0], *seen[1]}) == [f"step {number:02}" for number in range(22)]
    lines = (await house.get("/admin/models/talker", format="csv")).splitlines()
    assert len(lines) == 1 + 24
    assert lines[1].partition(",")[2].startswith("scheduled,")
    await house.get("/admin/models/talker", 400, after="odd")


async def test_a_list_is_made_given_renamed_and_removed(house: House) -> None:
    accounts = Accounts(house.engine)
    one = await accounts.create(NewAccount(name="Short & Co", balance_nanos=10**9))
    await house.post("/admin/prices/lists/new", name="partners")
    await house.post("/admin/prices/lists/new", 422, name="partners")
    await house.post("/admin/prices/lists/partners/rename", name="friends")
    await accounts.set_pricing(one.id, list_name="friends", discount_ppm=0)
    page = await house.get("/admin/prices/lists/friends")
    assert "Short &amp; Co" in page
    assert "/admin/models/talker?list=friends" in page
    data = (await house.client.get("/admin/prices/lists/friends?format=json")).json()
    assert data["accounts"][0]["account_id"] == one.id
    refused = await house.post("/admin/prices/lists/friends/remove", 422)
    assert "1 accounts pay by this list" in refused.text
    await accounts.set_pricing(one.id, list_name=None, discount_ppm=0)
    await house.post("/admin/prices/lists/friends/remove")
    await house.get("/admin/prices/lists/friends", 404)
    assert (await house.client.get("/admin/prices/lists.json")).json() == {"price_lists": []}


async def test_the_terms_of_an_account_are_drafted_rated_and_set(house: House) -> None:
    accounts = Accounts(house.engine)
    one = await accounts.create(NewAccount(name="Short", balance_nanos=10**9))
    await accounts.create(NewAccount(name="Shorter"))
    await house.post("/admin/prices/lists/new", name="partners")
    rows = (PriceComponent("input_token", 100_000), PriceComponent("output_token", 100_000))
    await house.prices.publish(Publication(model="talker", draft=Draft(rows=rows), price_list="partners"), ADA)
    path = f"/admin/accounts/{one.id}/pricing"
    found = await house.client.get("/admin/prices/terms", params={"account": "short", "list": "partners"})
    assert found.headers["location"] == f"{path}?list=partners"
    await house.get("/admin/prices/terms", 409, account="hort")
    await house.get("/admin/prices/terms", 404, account="nobody")
    async with asyncio.timeout(60):
        while "$0.00013125" not in (part := await house.get(f"{path}/outcome", list="partners", discount="12.5")):
            await asyncio.sleep(0.05)  # until this gateway has read the list's price
    assert "pays the prices of partners less 12.5% in place of list prices" in part
    for wrong in ("101", "-1", "many", "1.00001"):
        assert 'id="f-discount"' in await house.get(path, discount=wrong)
        await house.post(path, 422, discount=wrong, base="0-0", reason="x")
    await house.post(path, 422, discount="10", base="0-0")
    begun = await house.post(f"{path}/backtest", discount="10", days="7")
    assert await BacktestRunner(house.engine).run_one()
    assert f"{path}?discount=10" in await house.get(begun.headers["location"])
    await house.post(path, discount="10", base="0-0")
    stale = await house.post(path, 409, discount="20", base="0-0", reason="more")
    assert "changed meanwhile, to list prices less 10%" in stale.text
    await house.post(path, list="partners", discount="10", base="0-100000", reason="a partner now")
    shown = await accounts.show(one.id)
    assert shown.discount_ppm == 100_000
    assert shown.price_list_id is not None
    audit = await house.get("/admin/audit", object_kind="account", object_id=one.id)
    assert "a partner now" in audit
    assert "after backtest bt_" in audit
    lists = await house.get("/admin/prices/lists")
    assert lists.index('id="discounts"') < lists.index(">Short<") < lists.index("10%")


async def test_a_backtest_is_followed_and_published(house: House) -> None:
    scene = Scene(house.database_url)
    await PriceStore(house.engine).publish(
        Publication(model="talker", draft=Draft(rows=(PriceComponent("input_token", 150_000),))),
        ADA,
    )
    await scene.close()
    draft = {"model": "talker", "usd": "0.30", "per": "1M input tokens", "when": ""}
    begun = await house.post("/admin/prices/backtest", **draft, days="7")
    address = begun.headers["location"].partition("?")[0]
    assert "Waiting for a settler" in await house.get(address)
    assert await BacktestRunner(house.engine).run_one()
    page = await house.get(address)
    assert "Said, not hidden" in page
    assert "0 requests ($0.00) could not be rated" in page
    question = await house.get("/admin/prices/publish", **draft)
    assert "on the last 7 days" in question
    await house.post("/admin/prices/publish", **draft)
    assert (await house.prices.history("talker"))[0].reason.startswith("after backtest bt_")
    other = await house.get("/admin/prices/outcome", **{**draft, "usd": "0.31"})
    assert "it is stale" in other


async def test_viewers_look_and_change_nothing(house: House) -> None:
    house.client.cookies.clear()
    await sign_in(house.client, VIEWER_KEY)
    page = await house.get("/admin/prices/outcome", **DRAFT)
    assert "This needs the role billing or owner; yours is viewer." in page
    await house.post("/admin/prices/publish", 403, **DRAFT, reason="mine")
    await house.post("/admin/prices/backtest", 403, **DRAFT, days="7")
    assert len(await house.prices.history("talker")) == 1
