"""The pages of accounts: who runs out first, and money, limits and suspension by forms that say what they come to."""

import re
from collections.abc import AsyncIterator

import asyncpg
import httpx
import pytest

from gateway.ledger.accounts import NewAccount
from gateway.ledger.keys import NewKey
from gateway.ledger.refunds import NewRefund, Refunds
from tests.admin.shop import Shop, open_shop, send
from tests.ledger.scene import USD
from tests.ledger.test_refunds import ADA


@pytest.fixture
async def shop(database_url: str) -> AsyncIterator[Shop]:
    async with open_shop(database_url) as opened:
        yield opened


def names_in(page: httpx.Response) -> list[str]:
    """Give the names of the rows of a list, in their order."""
    assert page.status_code == 200, page.text
    return re.findall(r'<td data-label="Account"[^>]*>(?:<div>)?<a href="[^"]*">([^<]*)</a>', page.text)


async def test_accounts_that_run_out_first_stand_first(shop: Shop) -> None:
    accounts, keys = shop.scene.accounts, shop.scene.keys
    ada = shop.scene.account
    await shop.scene.call("painter")
    short = await accounts.create(NewAccount(name="Short", balance_nanos=20_000_000))
    shop.scene.account, shop.scene.key = short, await keys.create(NewKey(account_id=short.id, name="short"))
    await shop.scene.call("painter")
    await accounts.create(NewAccount(name="Idle", balance_nanos=USD))
    stopped = await accounts.create(NewAccount(name="Stopped"))
    await accounts.suspend(stopped.id)
    async with shop.house.operator("viewer") as client:
        page = await client.get("/admin/accounts")
        assert names_in(page) == ["Short", "Ada", "Idle", "Stopped"]
        assert names_in(await client.get("/admin/accounts?q=id")) == ["Idle"]
        told = {one["name"]: one for one in (await client.get("/admin/accounts.json")).json()["accounts"]}
        assert (told["Short"]["days_left"], told["Ada"]["days_left"]) == (133, 69_993)
        assert (told["Idle"]["days_left"], told["Stopped"]["state"]) == (None, "suspended")
        assert told["Ada"]["spent_30d_nanos"] == 1_000_000
        assert (await client.get("/admin/accounts.csv")).text.count("\r\n") == 5
        assert (await client.get(f"/admin/accounts/{ada.id}?after=odd")).status_code == 400
        assert (await client.get("/admin/accounts/999999")).status_code == 404


async def test_an_account_is_created_topped_up_and_adjusted_by_forms(shop: Shop) -> None:
    async with shop.house.operator("billing") as client:
        taken = await send(client, "/admin/accounts/new", {"name": "Ada", "kind": "prepaid"})
        assert taken.status_code == 422
        assert "There is an account of this name" in taken.text
        made = await send(
            client, "/admin/accounts/new", {"name": "Bea & Co", "kind": "prepaid", "balance": "$1,000.50"}
        )
        assert made.status_code == 303
        path = made.headers["location"]
        assert (await client.get(path)).text.count("Bea &amp; Co") >= 2
        for amount in ("", "0", "-1", "many"):
            assert (await send(client, f"{path}/top-up", {"amount": amount})).status_code == 422, amount
        done = await send(client, f"{path}/top-up", {"amount": "9.50", "reason": "invoice 7"})
        assert done.status_code == 303
        assert "$9.50 is booked: Bea &amp; Co has $1,010.00 available." in (await client.get(path)).text
        assert (await send(client, f"{path}/adjust", {"amount": "-2000", "reason": "too much"})).status_code == 422
        assert (await send(client, f"{path}/adjust", {"amount": "-10", "reason": ""})).status_code == 422
        assert (await send(client, f"{path}/adjust", {"amount": "-10", "reason": "a typing error"})).status_code == 303
        told = (await client.get(f"{path}?format=json")).json()
    assert told["account"]["available_nanos"] == 1000 * USD
    assert [(one["kind"], one["amount_nanos"], one["reason"]) for one in told["ledger"]] == [
        ("adjustment", -10 * USD, "a typing error"),
        ("top_up", 9_500_000_000, "invoice 7"),
        ("top_up", 1_000_500_000_000, "opening balance"),
    ]
    connection = await asyncpg.connect(shop.scene.database_url)
    actions = [row["action"] for row in await connection.fetch("select action from audit order by id")]
    await connection.close()
    assert [name for name in actions if name.startswith("account.")] == [
        "account.create",
        "account.top_up",
        "account.adjustment",
    ]


async def test_a_credit_limit_is_not_set_below_what_is_owed(shop: Shop) -> None:
    postpaid = await shop.scene.accounts.create(
        NewAccount(name="Later", kind="postpaid", credit_limit_nanos=USD, balance_nanos=0)
    )
    await shop.scene.accounts.adjust(postpaid.id, -USD // 2, reason="owed from before")
    path = f"/admin/accounts/{postpaid.id}/credit-limit"
    async with shop.house.operator("billing") as client:
        assert "It owes $0.50" in (await client.get(path)).text
        assert (await send(client, path, {"limit": "0.25"})).status_code == 422
        assert (await send(client, path, {"limit": "3"})).status_code == 303
    assert (await shop.scene.accounts.show(postpaid.id)).credit_limit_nanos == 3 * USD


async def test_suspending_says_what_it_stops_and_resuming_undoes_it(shop: Shop) -> None:
    await shop.scene.admit()
    path = f"/admin/accounts/{shop.scene.account.id}"
    async with shop.house.operator("viewer") as client:
        assert (await client.get(f"{path}/suspend")).status_code == 403
        shown = (await client.get(path)).text
        assert "This needs the role billing or owner; yours is viewer." in shown
    async with shop.house.operator("billing") as client:
        asked = (await client.get(f"{path}/suspend")).text
        assert "Its 1 live keys are refused" in asked
        assert "1 of its requests are open, $0.01 held" in asked
        assert (await send(client, f"{path}/suspend", {})).status_code == 303
        assert "Suspended since" in (await client.get(path)).text
        assert (await send(client, f"{path}/resume", {})).status_code == 303
    assert (await shop.scene.accounts.show(shop.scene.account.id)).suspended_at is None


async def test_limits_and_alerts_of_an_account_are_set_by_forms(shop: Shop) -> None:
    path = f"/admin/accounts/{shop.scene.account.id}"
    async with shop.house.operator("billing") as client:
        assert (
            await send(client, f"{path}/limits", {"month": "12", "total": "100", "concurrent": "5"})
        ).status_code == 303
        shown = (await client.get(path)).text
        for words in ("Budget a month", "Budget in all", "Requests at once", "0 of 5"):
            assert words in shown
        assert (await send(client, f"{path}/alerts", {"url": "not an address"})).status_code == 422
        assert (await send(client, f"{path}/alerts", {"url": "https://example.com/alerts"})).status_code == 303
        assert "https://example.com/alerts" in (await client.get(path)).text


async def test_the_balance_line_ends_at_what_there_is_and_follows_charges_and_refunds(shop: Shop) -> None:
    request_id = await shop.scene.call("painter")
    await Refunds(shop.scene.engine).give(NewRefund(request_id=request_id, reason="blurred", amount_nanos=1000), ADA)
    async with shop.house.operator("viewer") as client:
        page = (await client.get(f"/admin/accounts/{shop.scene.account.id}")).text
    have = (await shop.scene.accounts.show(shop.scene.account.id)).available_nanos
    values = re.search(r'"label":"Balance","values":\[([^\]]*)\]', page)
    assert values is not None
    line = [int(one) for one in values[1].split(",")]
    assert (line[0], line[-1]) == (0, have)


async def test_the_ledger_goes_on_where_the_page_before_ended(shop: Shop) -> None:
    for at in range(55):
        await shop.scene.accounts.top_up(shop.scene.account.id, at + 1, reason=f"payment {at:02}")
    path = f"/admin/accounts/{shop.scene.account.id}"
    async with shop.house.operator("viewer") as client:
        first = (await client.get(path)).text
        link = re.search(r'rel="next" href="([^"]*)"', first)
        assert link is not None
        rest = (await client.get(link[1].replace("&amp;", "&"))).text
    seen = re.findall(r"payment \d\d", first) + re.findall(r"payment \d\d", rest)
    assert sorted(seen) == [f"payment {at:02}" for at in range(55)]


async def test_a_jump_finds_accounts_keys_models_and_requests(shop: Shop) -> None:
    request_id = await shop.scene.call()
    account, key = shop.scene.account, shop.scene.key
    cases = {
        "Ada": f"/admin/accounts/{account.id}",
        "ad": f"/admin/accounts/{account.id}",
        "prod": f"/admin/keys/{key.id}",
        "painter": "/admin/models/painter",
        key.key: f"/admin/keys?q={key.prefix}",
        request_id: f"/admin/requests/{request_id}",
        request_id[:12]: f"/admin/requests?id={request_id[:12]}",
        "nothing like it": "/admin/models?q=nothing%20like%20it",
    }
    async with shop.house.operator("viewer") as client:
        for text, target in cases.items():
            answer = await client.get("/admin/jump", params={"to": text})
            assert (answer.status_code, answer.headers["location"]) == (303, target)
