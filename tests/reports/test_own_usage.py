"""`GET /v1/usage` through the whole gateway: a key reads its own usage and nobody else's."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app.create import create_app
from gateway.ledger.accounts import NewAccount
from gateway.ledger.keys import NewKey
from gateway.settings import Settings
from tests.ledger.scene import Scene

ADMIN_KEY = "an-admin-key-of-some-length"


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


@pytest.fixture
async def client(database_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(
        Settings(database_url=database_url, redis_url=redis_url, admin_key=ADMIN_KEY, blob_url=str(tmp_path / "blobs"))
    )
    async with living(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as made:
        yield made


@asynccontextmanager
async def living(app: Any) -> AsyncIterator[None]:
    """Start an ASGI application and stop it at the end of the block, as a server does."""
    told, heard = asyncio.Queue[dict[str, str]](), asyncio.Queue[dict[str, str]]()
    running = asyncio.create_task(app({"type": "lifespan", "asgi": {}, "state": {}}, told.get, heard.put))
    for step in ("startup", "shutdown"):
        await told.put({"type": f"lifespan.{step}"})
        assert (await heard.get())["type"] == f"lifespan.{step}.complete"
        if step == "startup":
            yield
    await running


def bearer(key: str) -> dict[str, str]:
    """Give the header that presents a key."""
    return {"authorization": f"Bearer {key}"}


async def test_a_key_reads_its_own_usage(scene: Scene, client: httpx.AsyncClient) -> None:
    await scene.call()
    bob = await scene.accounts.create(NewAccount(name="Bob"))
    bobs = await scene.keys.create(NewKey(account_id=bob.id))
    mine = await client.get("/v1/usage", params={"group_by": "model,key"}, headers=bearer(scene.key.key))
    assert mine.status_code == 200
    (row,) = mine.json()["rows"]
    assert (row["model"], row["key_id"], row["charge_nanos"], row["charge_usd"]) == (
        "talker",
        scene.key.id,
        5700,
        "0.0000057",
    )
    theirs = await client.get("/v1/usage", headers=bearer(bobs.key))
    assert (theirs.status_code, theirs.json()["rows"]) == (200, [])


async def test_csv_comes_by_parameter_or_by_accept(scene: Scene, client: httpx.AsyncClient) -> None:
    await scene.call()
    headers = bearer(scene.key.key)
    by_parameter = await client.get("/v1/usage", params={"format": "csv", "group_by": "model"}, headers=headers)
    by_accept = await client.get("/v1/usage", params={"group_by": "model"}, headers={**headers, "accept": "text/csv"})
    assert by_parameter.text == by_accept.text
    assert by_accept.headers["content-type"].startswith("text/csv")
    assert "attachment" in by_accept.headers["content-disposition"]
    (row,) = csv.DictReader(io.StringIO(by_accept.text))
    assert (row["model"], row["charge_usd"]) == ("talker", "0.0000057")


async def test_a_name_that_a_spreadsheet_would_run_is_quoted(scene: Scene, client: httpx.AsyncClient) -> None:
    scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name="=HYPERLINK(1)"))
    await scene.call()
    answer = await client.get("/v1/usage", params={"format": "csv", "group_by": "key"}, headers=bearer(scene.key.key))
    assert "'=HYPERLINK(1)" in answer.text


async def test_what_cannot_be_asked_is_400_by_name(scene: Scene, client: httpx.AsyncClient) -> None:
    for param, text in (
        ("group_by", "account"),
        ("group_by", "colour"),
        ("from", "yesterday"),
        ("to", "2026-99-01"),
        ("key", "1"),
        ("account", "1"),
        ("colour", "red"),
        ("format", "xml"),
        ("model", "\0"),
    ):
        answer = await client.get("/v1/usage", params={param: text}, headers=bearer(scene.key.key))
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_unknown_revoked_and_expired_keys_are_the_same_401(scene: Scene, client: httpx.AsyncClient) -> None:
    await scene.keys.revoke(scene.key.id)
    answers = [
        await client.get("/v1/usage", headers=headers)
        for headers in ({}, bearer(""), bearer("fg_live_wrong"), bearer(scene.key.key), bearer(ADMIN_KEY))
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1


async def test_both_reports_and_their_parameters_are_described(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi/litestar/openapi.json")).json()
    own = {one["name"] for one in document["paths"]["/v1/usage"]["get"]["parameters"]}
    admin = {one["name"] for one in document["paths"]["/admin/api/usage"]["get"]["parameters"]}
    assert {"from", "to", "group_by", "format"} <= own
    assert admin - own == {"account", "key", "route"}
