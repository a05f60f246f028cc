"""The admin API over HTTP, with a real Postgres behind it."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from litestar import Litestar

from gateway.admin.api.router import admin_router
from gateway.db.session import slow_engine
from gateway.http.errors import native_body
from gateway.http.handlers import handlers_of
from gateway.ledger.accounts import Accounts
from gateway.ledger.books.keeper import BooksKeeper
from gateway.ledger.books.verify import Books
from gateway.ledger.keys import Keys
from gateway.queues.revisions import MemoryRevisions
from gateway.reports.usage import UsageReport
from gateway.webhooks.deliveries import Deliveries

ADMIN_KEY = "an-admin-key-of-some-length"
USD = 10**9


@pytest.fixture
async def client(module_database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    engine = slow_engine(module_database_url)
    router = admin_router(
        {"owner": ADMIN_KEY},
        accounts=Accounts(engine),
        keys=Keys(engine),
        usage_report=UsageReport(engine),
        engine=engine,
        deliveries=Deliveries(engine),
        revisions=MemoryRevisions(),
    )
    app = Litestar(
        [router],
        exception_handlers=handlers_of(native_body),
        openapi_config=None,
    )
    headers = {"authorization": f"Bearer {ADMIN_KEY}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/admin/api", headers=headers) as made:
        yield made
    await engine.dispose()


async def made_account(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/accounts", json={"name": uuid4().hex, "balance_nanos": USD, **fields})
    assert answer.status_code == 201
    found: dict[str, Any] = answer.json()
    return found


async def test_an_account_is_created_shown_listed_and_topped_up(client: httpx.AsyncClient) -> None:
    made = await made_account(client)
    assert (made["available_nanos"], made["held_nanos"], made["spent_nanos"]) == (USD, 0, 0)
    topped_up = await client.post(f"/accounts/{made['id']}/top-up", json={"amount_nanos": 1, "reason": "invoice 7"})
    assert topped_up.status_code == 200
    assert topped_up.json()["available_nanos"] == USD + 1
    assert (await client.get(f"/accounts/{made['id']}")).json() == topped_up.json()
    listed = await client.get("/accounts", params={"after": made["id"] - 1})
    assert listed.json() == {"accounts": [topped_up.json()], "next_after": None}


async def test_lists_are_paged(client: httpx.AsyncClient) -> None:
    ids = [(await made_account(client))["id"] for _ in range(3)]
    first = (await client.get("/accounts", params={"limit": 2, "after": ids[0] - 1})).json()
    assert [one["id"] for one in first["accounts"]] == ids[:2]
    rest = (await client.get("/accounts", params={"limit": 2, "after": first["next_after"]})).json()
    assert [one["id"] for one in rest["accounts"]] == ids[2:]
    assert rest["next_after"] is None


async def test_a_postpaid_account_is_adjusted_suspended_and_resumed(client: httpx.AsyncClient) -> None:
    made = await made_account(client, kind="postpaid", credit_limit_nanos=USD, balance_nanos=0)
    path = f"/accounts/{made['id']}"
    assert (await client.post(f"{path}/adjust", json={"amount_nanos": -5, "reason": "x"})).json()[
        "available_nanos"
    ] == -5
    raised = await client.post(f"{path}/credit-limit", json={"credit_limit_nanos": 2 * USD})
    assert raised.json()["credit_limit_nanos"] == 2 * USD
    assert (await client.post(f"{path}/suspend")).json()["suspended_at"] is not None
    assert (await client.post(f"{path}/resume")).json()["suspended_at"] is None


async def test_a_key_is_shown_whole_only_when_it_is_made(client: httpx.AsyncClient) -> None:
    account = await made_account(client)
    answer = await client.post("/keys", json={"account_id": account["id"], "name": "prod", "budget_nanos": 5})
    assert answer.status_code == 201
    secret = answer.json()["key"]
    key_id = answer.json()["id"]
    for later in (
        await client.get("/keys", params={"account": account["id"]}),
        await client.get(f"/keys/{key_id}"),
        await client.post(f"/keys/{key_id}/budget", json={"budget_nanos": None}),
        await client.post(f"/keys/{key_id}/revoke"),
    ):
        assert later.status_code == 200
        assert secret not in later.text
        assert secret[:12] in later.text
    assert (await client.get(f"/keys/{key_id}")).json()["revoked_at"] is not None


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("/accounts", {"name": "x", "colour": "red"}, 400, "colour"),
        ("/accounts", {"balance_nanos": 1}, 400, "name"),
        ("/accounts", {"name": ""}, 400, "name"),
        ("/accounts", {"name": " "}, 400, "name"),
        ("/accounts", {"name": "a\x00b"}, 400, "name"),
        ("/accounts", {"name": "\x1b[31mred\n"}, 400, "name"),
        ("/accounts", {"name": "x", "balance_nanos": 1.5}, 400, "balance_nanos"),
        ("/accounts", {"name": "x", "balance_nanos": "1"}, 400, "balance_nanos"),
        ("/accounts", {"name": "x", "balance_nanos": 2**70}, 400, "balance_nanos"),
        ("/accounts", {"name": "x", "kind": "free"}, 400, "kind"),
        ("/accounts", {"name": "x", "credit_limit_nanos": 1}, 400, "credit_limit_nanos"),
        ("/accounts", {"name": "taken"}, 409, "name"),
        ("/accounts/1/top-up", {"amount_nanos": 0}, 400, "amount_nanos"),
        ("/accounts/1/adjust", {"amount_nanos": 1}, 400, "reason"),
        ("/accounts/1/adjust", {"amount_nanos": -2 * USD, "reason": "x"}, 422, "amount_nanos"),
        ("/accounts/99999/top-up", {"amount_nanos": 1}, 404, None),
        ("/accounts/0/top-up", {"amount_nanos": 1}, 400, None),
        ("/keys", {"account_id": 99999}, 404, "account_id"),
        ("/keys", {"account_id": 1, "expires_at": "2020-01-01T00:00:00Z"}, 400, "expires_at"),
        ("/keys", {"account_id": 1, "expires_at": "2099-01-01T00:00:00"}, 400, "expires_at"),
        ("/keys/99999/revoke", {}, 404, None),
    ],
)
async def test_refusals_name_the_field(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], status: int, named: str | None
) -> None:
    made = await made_account(client, balance_nanos=USD)
    if body.get("name") == "taken":
        body = {"name": made["name"]}
    if body.get("account_id") == 1:
        body = {**body, "account_id": made["id"]}
    answer = await client.post(path.replace("/1/", f"/{made['id']}/"), json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["param"] == named


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"name": "\xff"}', b'{"name": NaN}', b"[" * 2000, b'{"name": "\\ud800"}']
)
async def test_a_body_that_is_not_json_of_the_right_shape_is_400(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/accounts", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


async def test_nothing_opens_without_the_admin_key(client: httpx.AsyncClient) -> None:
    account = await made_account(client)
    secret = (await client.post("/keys", json={"account_id": account["id"]})).json()["key"]
    for authorization in ("", "Bearer wrong", f"Bearer {secret}"):
        for method, path in (
            ("GET", "/accounts"),
            ("POST", "/accounts"),
            ("GET", f"/accounts/{account['id']}"),
            ("POST", f"/accounts/{account['id']}/top-up"),
            ("GET", "/keys"),
            ("POST", "/keys"),
            ("GET", "/usage"),
            ("POST", "/books/verify"),
        ):
            answer = await client.request(method, path, headers={"authorization": authorization})
            assert answer.status_code == 401, (method, path)


async def test_to_verify_the_books_is_to_ask_a_settler_and_waits_for_nothing(
    client: httpx.AsyncClient, module_database_url: str
) -> None:
    await made_account(client)
    asked = await client.post("/books/verify")
    assert asked.status_code == 202
    job = asked.json()
    assert asked.headers["location"] == f"/admin/api/books/jobs/{job['id']}"
    assert (job["started_at"], job["run_id"], job["trigger"]) == (None, None, "api")
    for path in ("/books/verify", "/books/jobs"):
        assert (await client.post(path)).json()["id"] == job["id"], "one is waited for already"
    assert (await client.get("/books")).status_code == 404, "the gateway has computed nothing"
    engine = slow_engine(module_database_url)
    books = Books(engine)
    await BooksKeeper(engine, quick=books, complete=books, every_s=0, told=Silent()).round()
    await engine.dispose()
    job = (await client.get(f"/books/jobs/{job['id']}")).json()
    run = (await client.get(f"/books/runs/{job['run_id']}")).json()
    assert (run["green"], run["trigger"], run["report"]["holds"]) == (True, "api", True)
    assert {check["invariant"] for check in run["report"]["checks"]} == {f"I{n}" for n in range(1, 14)}


class Silent:
    """Who is told of verdicts, and does nothing with them."""

    def books(self, green: bool, checked_at: datetime) -> None:
        pass


async def test_usage_of_nothing_is_an_empty_report(client: httpx.AsyncClient) -> None:
    answer = await client.get("/usage", params={"group_by": "model,day"})
    assert answer.status_code == 200
    assert answer.json()["rows"] == []
    assert answer.json()["group_by"] == ["day", "model"]
    assert answer.json()["total"]["charge_usd"] == "0"
    for params in ({"group_by": "colour"}, {"from": "x"}, {"colour": "red"}):
        refused = await client.get("/usage", params=params)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == next(iter(params))


async def test_how_far_a_revision_has_come_is_told_even_where_no_gateway_lives(client: httpx.AsyncClient) -> None:
    answer = await client.get("/prices/gateways", params={"revision": 3})
    assert (answer.status_code, answer.json()) == (200, {"gateways": 0, "having": 0, "last_at": None})


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "m", "price": [{"usd": "-1"}]}, "price[0].usd"),
        ({"model": "m", "price": [{"usd": "1", "per": "1M moons"}]}, "price[0].per"),
        ({"model": "m", "price": [{"usd": "1"}, {"usd": "1", "when": {"a": {"to": 3}}}]}, "price[1].when"),
        ({"model": "m", "price": [{"usd": "1"}], "minimum_usd": "a cent"}, "minimum_usd"),
        ({"model": "m", "price": [{"usd": 1}]}, "price[0].usd"),
    ],
)
async def test_what_is_wrong_with_a_price_is_named(client: httpx.AsyncClient, body: dict[str, Any], param: str) -> None:
    error = (await client.post("/prices", json=body)).json()["error"]
    assert error["param"] == param
