"""What an API key's owner reads at /usage: its own figures, in every form, and nothing of anyone else's."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest

from gateway.admin.pages.owner import PAGES
from gateway.ledger.keys import NewKey
from gateway.reports.exports.exports import Exports
from gateway.reports.statements.read import Statements
from tests.admin.conftest import SiteHouse, sign_in, site_house
from tests.ledger.patience import amid_a_day
from tests.ledger.scene import Scene

TEXTS = ("csv", "json", "jsonl")
RANDOM = re.compile(r"[\w-]{24,}")
"""Tokens, nonces and ids, in which a worker's name of two letters stands by chance."""


class Place:
    """A house with a scene in it: what was called, and who is signed in with which key."""

    def __init__(self, house: SiteHouse, scene: Scene) -> None:
        self.house = house
        self.scene = scene
        self.month = f"{datetime.now(UTC):%Y-%m}"
        self.ids: dict[str, str] = {}


@pytest.fixture
async def place(database_url: str) -> AsyncIterator[Place]:
    amid_a_day()
    scene = await Scene.open(database_url)
    given = {"exports": Exports(database_url), "statements": Statements(scene.engine)}
    async with site_house(database_url, PAGES, given=given) as house:
        made = Place(house, scene)
        made.ids["done"] = await scene.call(cost_nanos=77, route="elsewhere")
        made.ids["failed"] = await scene.call("painter", task="text-to-image", outcome="failed", route="elsewhere")
        await house.keyring.refresh()
        yield made
    await scene.close()


@asynccontextmanager
async def owner(place: Place) -> AsyncIterator[httpx.AsyncClient]:
    """A browser in which the owner of the scene's key is signed in."""
    async with place.house.client() as client:
        await sign_in(client, place.scene.key.key, "/usage")
        yield client


async def test_usage_says_what_was_spent_and_that_failures_were_free(place: Place) -> None:
    async with owner(place) as client:
        page = await client.get("/usage")
        assert page.status_code == 200, page.text
        for text in ("talker", "painter", "failed", "not charged", "no budget of its own"):
            assert text in page.text
        assert 'role="alert"' not in page.text
        data = (await client.get("/usage?format=json")).json()
        assert data["total"]["charge_nanos"] == 5700
        assert {row["outcome"] for row in data["rows"]} == {"succeeded", "failed"}
        rows = list(csv.DictReader(io.StringIO((await client.get("/usage?format=csv")).text)))
        assert sum(int(row["charge_nanos"]) for row in rows) == 5700
        for text in (json.dumps(data), (await client.get("/usage?format=csv")).text):
            assert "cost" not in text
            assert "margin" not in text


async def test_a_budget_is_a_meter_that_says_when_it_runs_out(place: Place) -> None:
    connection = place.scene.engine
    async with connection.begin() as session:
        await session.exec_driver_sql(f"update api_key set budget_nanos = 10000 where id = {place.scene.key.id}")
    async with owner(place) as client:
        page = await client.get("/usage")
    assert "<meter" in page.text
    assert "$0.0000043 left of $0.00001" in page.text
    assert "runs out in" in page.text


async def test_requests_are_listed_and_told_without_the_operators_affairs(place: Place) -> None:
    async with owner(place) as client:
        listed = await client.get("/usage/requests")
        assert all(each in listed.text for each in place.ids.values())
        only = await client.get("/usage/requests", params={"outcome": "failed", "model": "painter"})
        assert place.ids["failed"] in only.text
        assert place.ids["done"] not in only.text
        for params in ({"model": "unheard-of"}, {"id": "req_" + "0" * 32}):
            assert "No request matches" in (await client.get("/usage/requests", params=params)).text
        one = await client.get(f"/usage/requests/{place.ids['done']}")
        assert "$0.0000057" in one.text
        told = await client.get(f"/usage/requests/{place.ids['done']}?format=json")
        assert told.json()["charge_nanos"] == 5700
        for text in (RANDOM.sub("", each.text) for each in (listed, one, told)):
            for word in ("elsewhere", "w1", "cost_nanos", "Margin", "fake</"):
                assert word not in text, word


async def test_nothing_of_another_key_can_be_found(place: Place) -> None:
    """Neither by a key of another account, nor by another key of the same account."""
    _, stranger = await place.house.key("stranger")
    sibling = await place.scene.keys.create(NewKey(account_id=place.scene.account.id, name="sibling"))
    await place.house.keyring.refresh()
    for secret in (stranger, sibling.key):
        async with place.house.client() as client:
            await sign_in(client, secret, "/usage")
            for request_id in place.ids.values():
                assert (await client.get(f"/usage/requests/{request_id}")).status_code == 404
                assert f"/usage/requests/{request_id}" not in (await client.get("/usage/requests")).text
            asked = {"key": str(place.scene.key.id), "account": str(place.scene.account.id)}
            exports = [f"/usage/requests.{kind}" for kind in TEXTS]
            for path in ("/usage", "/usage?format=json", "/usage?format=csv", *exports):
                answer = await client.get(path, params=asked)
                assert answer.status_code == 200
                assert "talker" not in answer.text, path
            path = f"/admin/accounts/{place.scene.account.id}/statements/{place.month}"
            assert (await client.get(path)).status_code == 303
    for secret in (stranger, sibling.key):
        async with place.house.client() as client:
            await sign_in(client, secret, "/usage")
            told = (await client.get(f"/usage/statements/{place.month}.json")).json()
            assert (told["charge_nanos"], told["top_up_nanos"], told["closing_nanos"]) == (0, 0, 0)
            page = (await client.get(f"/usage/statements/{place.month}")).text
            assert "Top-ups" not in page
            assert "Spent by its end" in page
            assert "talker" not in page


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "parquet"])
async def test_exports_come_under_the_lists_filters(place: Place, kind: str) -> None:
    async with owner(place) as client:
        answer = await client.get(f"/usage/requests.{kind}", params={"outcome": "succeeded"})
    assert answer.status_code == 200
    assert f".{kind}" in answer.headers["content-disposition"]
    if kind == "parquet":
        assert answer.content[:4] == answer.content[-4:] == b"PAR1"
    else:
        assert place.ids["done"] in answer.text
        assert place.ids["failed"] not in answer.text


async def test_a_statement_says_the_same_in_all_four_forms(place: Place) -> None:
    async with owner(place) as client:
        listed = await client.get("/usage/statements")
        (month, *_) = (await client.get("/usage/statements.json")).json()["statements"]
        page = await client.get(f"/usage/statements/{place.month}")
        data = (await client.get(f"/usage/statements/{place.month}.json")).json()
        rows = list(csv.DictReader(io.StringIO((await client.get(f"/usage/statements/{place.month}.csv")).text)))
        pdf = await client.get(f"/usage/statements/{place.month}.pdf", params={"paper": "us-letter"})
        assert (await client.get("/usage/statements/2026-99")).status_code == 404
    assert page.status_code == 200, page.text
    assert place.month in listed.text
    assert "$0.0000057" in listed.text
    assert (month["month"], month["charge_nanos"]) == (place.month, data["charge_nanos"])
    assert month["requests"] == sum(day["requests"] for day in data["days"])
    spent = (await place.scene.accounts.show(place.scene.account.id)).spent_nanos
    assert data["charge_nanos"] == spent == 5700
    assert "$0.0000057" in page.text
    assert "Provisional" in page.text
    assert data["checksum"] in page.text
    assert [row["amount_usd"] for row in rows if row["row"] == "charge"] == ["0.0000057"]
    assert [row["name"] for row in rows if row["row"] == "checksum"] == [data["checksum"]]
    assert pdf.content.startswith(b"%PDF-")
    assert "style=" not in page.text


async def test_operators_read_statements_and_exports_of_all(place: Place) -> None:
    async with place.house.operator("viewer") as client:
        path = f"/admin/accounts/{place.scene.account.id}/statements/{place.month}"
        assert (await client.get(f"{path}.json")).json()["charge_nanos"] == 5700
        assert "Statement" in (await client.get(path)).text
        assert (await client.get(f"/admin/accounts/999/statements/{place.month}")).status_code == 404
        (line,) = (await client.get("/admin/export/requests.jsonl", params={"outcome": "succeeded"})).text.splitlines()
        assert json.loads(line)["margin_nanos"] == 5700 - 77
        report = (await client.get("/admin/usage.json", params={"group_by": "route"})).json()
        assert [(row["route"], row["cost_nanos"], row["uncosted"]) for row in report["rows"]] == [("elsewhere", 77, 1)]
        assert (await client.get("/admin/usage.parquet")).content[:4] == b"PAR1"
        assert "elsewhere" not in (await client.get("/admin/usage.csv")).text


async def test_without_a_session_there_is_only_the_sign_in(place: Place) -> None:
    async with place.house.client() as client:
        for path in ("/usage", "/usage/requests", "/usage/requests.csv", f"/usage/statements/{place.month}.pdf"):
            assert (await client.get(path)).status_code in (303, 401), path
    async with place.house.operator() as client:
        assert (await client.get("/usage")).status_code == 303
