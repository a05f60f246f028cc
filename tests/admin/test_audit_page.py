"""The page Audit: who changed what, filtered, page by page, and as data."""

import csv
import io
import json
from collections.abc import AsyncIterator

import pytest

from gateway.admin.pages.audit import PAGES
from gateway.ledger.audit import Action, Actor, Changes, write_audit
from gateway.ledger.transaction import transaction
from tests.admin.conftest import SiteHouse, site_house

ANNA = Actor(name="anna@example.com", role="owner", door="dashboard", request_id="page_1")
SCRIPT = Actor(name="billing key", role="billing", door="api")


@pytest.fixture
async def house(database_url: str) -> AsyncIterator[SiteHouse]:
    async with site_house(database_url, PAGES) as running:
        yield running


async def noted(house: SiteHouse, by: Actor, name: str, object_id: str, changes: Changes | None = None) -> int:
    action = Action(name=name, object_kind=name.partition(".")[0], object_id=object_id, changes=changes or {})
    async with transaction(house.engine) as connection:
        return await write_audit(connection, by, action)


async def test_a_change_is_told_with_who_and_how_and_its_difference(house: SiteHouse) -> None:
    changes: Changes = {"budget_nanos": (5 * 10**9, 2**60), "models": (None, ["scribe"]), "free": (False, True)}
    entry = await noted(house, ANNA, "key.limit", "17", changes)
    async with house.operator("viewer") as client:
        page = (await client.get("/admin/audit")).text
        for words in ("anna@example.com", "dashboard", "key.limit", "key 17", "$5.00", "$1,152,921,504.606846976"):
            assert words in page
        whole = (await client.get(f"/admin/audit/{entry}")).text
        assert "page_1" in whole
        assert "<del>no</del>" in whole
        assert "<ins>yes</ins>" in whole
        assert "/admin/keys/17" in whole
        assert (await client.get("/admin/audit/999999")).status_code == 404


async def test_filters_stand_in_the_address_and_hold_together(house: SiteHouse) -> None:
    await noted(house, ANNA, "key.limit", "17")
    await noted(house, ANNA, "account.top_up", "3")
    await noted(house, SCRIPT, "key.revoke", "18")

    async def told(**query: str) -> list[str]:
        async with house.operator() as client:
            entries = (await client.get("/admin/audit.json", params=query)).json()["entries"]
            return [entry["action"] for entry in entries if entry["object_kind"] != "session"]

    assert await told(action="key.") == ["key.revoke", "key.limit"]
    assert await told(actor="anna@example.com") == ["account.top_up", "key.limit"]
    assert await told(door="api", role="billing") == ["key.revoke"]
    assert await told(object_kind="key", object_id="17") == ["key.limit"]
    assert await told(action="key.%") == []
    assert await told(**{"from": "2020-01-01", "to": "2020-02-01"}) == []


async def test_pages_follow_each_other_without_a_gap(house: SiteHouse) -> None:
    made = [await noted(house, ANNA, "key.limit", str(number)) for number in range(60)]
    async with house.operator() as client:
        first = (await client.get("/admin/audit", params={"actor": ANNA.name})).text
        assert "50 of 60 changes" in first
        assert f'id="entry-{made[10]}"' in first
        assert f'id="entry-{made[9]}"' not in first
        second = (await client.get("/admin/audit", params={"actor": ANNA.name, "after": str(made[10])})).text
        assert f'id="entry-{made[9]}"' in second
        assert f'id="entry-{made[10]}"' not in second
        assert (await client.get("/admin/audit?after=x")).status_code == 400


async def test_an_export_is_safe_for_spreadsheets_and_for_readers(house: SiteHouse) -> None:
    evil = Actor(name='=HYPERLINK("x")<script>', role="owner", door="cli")
    await noted(house, evil, "key.create", "1", {"name": ("", "<script>alert(1)</script>")})
    async with house.operator() as client:
        rows = list(csv.DictReader(io.StringIO((await client.get("/admin/audit.csv?door=cli")).text)))
        assert [row["actor"] for row in rows] == ["'" + evil.name]
        assert json.loads(rows[0]["changes"])["name"][1] == "<script>alert(1)</script>"
        page = (await client.get("/admin/audit?door=cli")).text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
