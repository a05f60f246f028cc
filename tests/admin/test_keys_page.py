"""The pages of keys: the nearest to their limits first, a secret shown once, limits, edits, revoking by name."""

import csv
import io
import re
from collections.abc import AsyncIterator

import asyncpg
import httpx
import pytest

from gateway.errors import FaregateError
from gateway.ledger.keys import NewKey, hash_of
from tests.admin.shop import Shop, open_shop, send
from tests.ledger.patience import amid_a_day
from tests.ledger.scene import USD


@pytest.fixture
async def shop(database_url: str) -> AsyncIterator[Shop]:
    amid_a_day()
    async with open_shop(database_url) as opened:
        yield opened


def names_in(page: httpx.Response) -> list[str]:
    """Give the names of the rows of a list, in their order."""
    assert page.status_code == 200, page.text
    return re.findall(r'<td data-label="Key"[^>]*>(?:<div>)?<a href="[^"]*">([^<]*)</a>', page.text)


async def test_keys_are_listed_by_the_share_of_their_budget_that_is_used(shop: Shop) -> None:
    account_id = shop.scene.account.id
    for name, budget in (("half", 20_000_000), ("none", None), ("spent", 10_000_000), ("fresh", USD)):
        key = await shop.scene.keys.create(NewKey(account_id=account_id, name=name, budget_nanos=budget))
        if name in {"half", "spent"}:
            shop.scene.key = key
            await shop.scene.call("painter")
    async with shop.house.operator("viewer") as client:
        page = await client.get("/admin/keys")
        assert names_in(page) == ["spent", "half", "fresh", "none", "prod"]
        assert "$0.001 of $0.02 in all" in page.text
        assert names_in(await client.get("/admin/keys?q=hal")) == ["half"]
        assert names_in(await client.get("/admin/keys?state=stopped")) == []
        table = list(csv.DictReader(io.StringIO((await client.get("/admin/keys.csv")).text)))
        assert [row["name"] for row in table] == ["spent", "half", "fresh", "none", "prod"]
        told = (await client.get("/admin/keys.json")).json()["keys"]
        assert [one["used_nanos"] for one in told][:2] == [1_000_000, 1_000_000]
        for wrong in ("state=odd", "account=x", "after=x"):
            assert (await client.get(f"/admin/keys?{wrong}")).status_code == 400


async def test_pages_of_keys_go_on_where_the_one_before_ended(shop: Shop) -> None:
    for at in range(55):
        await shop.scene.keys.create(NewKey(account_id=shop.scene.account.id, name=f"key-{at:02}", budget_nanos=USD))
    async with shop.house.operator("viewer") as client:
        first = await client.get("/admin/keys")
        link = re.search(r'rel="next" href="([^"]*)"', first.text)
        assert link is not None
        rest = await client.get(link[1].replace("&amp;", "&"))
    seen = names_in(first) + names_in(rest)
    assert len(seen) == len(set(seen)) == 56
    assert "50 of 56 keys" in first.text


async def test_a_new_key_is_shown_once_and_works(shop: Shop) -> None:
    account_id = shop.scene.account.id
    async with shop.house.operator("billing") as client:
        wrong = await send(client, "/admin/keys/new", {"account": str(account_id), "name": "x", "budget": "-1"})
        assert wrong.status_code == 422
        assert "not below zero" in wrong.text
        fields = {"account": str(account_id), "name": "mobile", "budget": "2.50", "models": "talker\npaint*",
                  "addresses": "10.0.0.0/8", "expires": "2090-01-31 18:00"}  # fmt: skip
        made = await send(client, "/admin/keys/new", fields)
        assert made.status_code == 200
        secret = re.search(r"fg_live_[A-Za-z0-9_-]{20,}", made.text)
        assert secret is not None
        assert "I stored it" in made.text
        key = next(one for one in await shop.scene.keys.list() if one.name == "mobile")
        assert (key.budget_nanos, key.models, key.addresses) == (2_500_000_000, ["paint*", "talker"], ["10.0.0.0/8"])
        assert key.expires_at is not None
        assert key.expires_at.isoformat() == "2090-01-31T18:00:00+00:00"
        for address in ("/admin/keys", f"/admin/keys/{key.id}", f"/admin/audit?object_id={key.id}"):
            assert secret[0] not in (await client.get(address)).text
    connection = await asyncpg.connect(shop.scene.database_url)
    stored = await connection.fetchval("select hash from api_key where id = $1", key.id)
    written = await connection.fetchval("select changes::text from audit where action = 'key.create'")
    await connection.close()
    assert stored == hash_of(secret[0])
    assert secret[0] not in written


async def test_limits_are_set_by_form_hold_and_are_lifted_by_an_empty_field(shop: Shop) -> None:
    path = f"/admin/keys/{shop.scene.key.id}/limits"
    async with shop.house.operator("viewer") as client:
        assert (await client.get(path)).status_code == 403
    async with shop.house.operator("billing") as client:
        wrong = await send(client, path, {"day": "lots"})
        assert wrong.status_code == 422
        assert 'aria-invalid="true"' in wrong.text
        assert (await send(client, path, {"day": "0.001", "requests": "100", "total": "5"})).status_code == 303
        shown = (await client.get(f"/admin/keys/{shop.scene.key.id}")).text
        assert "Budget a day" in shown
        assert "0 of 100" in shown
        assert "/admin/audit/" in shown
        await shop.scene.admit("painter", hold_nanos=1_000_000)
        with pytest.raises(FaregateError) as refused:
            await shop.scene.admit("painter", hold_nanos=1)
        assert refused.value.code == "budget_exceeded"
        assert (await send(client, path, {"day": "", "requests": "", "total": ""})).status_code == 303
    await shop.scene.admit("painter", hold_nanos=1)
    assert (await shop.scene.keys.show(shop.scene.key.id)).budget_nanos is None


async def test_a_key_is_edited_and_what_is_wrong_is_marked(shop: Shop) -> None:
    key_id = shop.scene.key.id
    path = f"/admin/keys/{key_id}/edit"
    async with shop.house.operator("billing") as client:
        assert (
            await send(client, path, {"name": "a <b> name", "models": "talker", "addresses": ""})
        ).status_code == 303
        shown = (await client.get(f"/admin/keys/{key_id}")).text
        assert "a &lt;b&gt; name" in shown
        for field, value in (("addresses", "nowhere"), ("expires", "soon"), ("expires", "2001-01-01")):
            wrong = await send(client, path, {"name": "x", field: value})
            assert wrong.status_code == 422, value
            assert f'id="f-{field}"' in wrong.text
    key = await shop.scene.keys.show(key_id)
    assert (key.name, key.models, key.addresses, key.expires_at) == ("a <b> name", ["talker"], None, None)


async def test_revoking_says_how_much_it_is_used_and_wants_the_name(shop: Shop) -> None:
    await shop.scene.call("painter")
    await shop.scene.admit()
    path = f"/admin/keys/{shop.scene.key.id}/revoke"
    async with shop.house.operator("billing") as client:
        asked = (await client.get(path)).text
        assert "Used 1 times today for $0.001, last" in asked
        assert "1 of its requests are open" in asked
        assert (await send(client, path, {"confirm_name": "prd"})).status_code == 422
        assert (await shop.scene.keys.show(shop.scene.key.id)).revoked_at is None
        assert (await send(client, path, {"confirm_name": "prod"})).status_code == 303
        assert (await client.get(path)).status_code == 422
        assert names_in(await client.get("/admin/keys")) == []
        assert names_in(await client.get("/admin/keys?state=stopped")) == ["prod"]
    assert (await shop.scene.keys.show(shop.scene.key.id)).revoked_at is not None


async def test_one_key_tells_what_it_spent_by_model(shop: Shop) -> None:
    await shop.scene.call("painter")
    await shop.scene.call()
    async with shop.house.operator("viewer") as client:
        plain = (await client.get(f"/admin/keys/{shop.scene.key.id}?format=json")).json()
        assert [(one["model"], one["sums"]["requests"]) for one in plain["models"]] == [("painter", 1), ("talker", 1)]
        spent = (await shop.scene.accounts.show(shop.scene.account.id)).spent_nanos
        assert plain["total"]["charge_nanos"] == spent
        assert (await client.get("/admin/keys/999999")).status_code == 404
