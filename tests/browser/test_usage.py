"""What the owner of a key does at /usage in Chromium: sees what it spent, reads a request, takes files along."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import arro3.io
import pytest
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit
from tests.system import System


@pytest.fixture(scope="module")
def requests_of(site: System) -> dict[str, list[str]]:
    """Answer the requests of two keys of two accounts, by the key."""
    made: dict[str, list[str]] = {}
    for name, count in (("The reader", 2), ("The other", 1)):
        _, secret = site.account(name, "5")
        body = {"model": "painter", "input": {"prompt": "a shelf"}}
        with site.client(secret) as caller:
            answers = [caller.post("/v1/requests", json=body, headers={"prefer": "wait=30"}) for _ in range(count)]
        made[secret] = [answer.json()["id"] for answer in answers]
    return made


def download(page: Page, name: str) -> Path:
    """Take a file along."""
    with page.expect_download() as arriving:
        page.get_by_role("link", name=name, exact=True).first.click()
    return Path(arriving.value.path())


def test_an_owner_sees_what_was_spent_and_reads_a_request(
    visit: Visit, visitor: Callable[..., Visit], site: System, requests_of: dict[str, list[str]]
) -> None:
    (mine, ids), (_, [foreign]) = requests_of.items()
    owner = visitor()
    page = owner.page
    page.goto("/usage")
    expect(page).to_have_url(re.compile("/usage/sign-in"))
    owner.forgive("401", "404", "403")
    page.fill("input[name=key]", mine[:-1])
    page.click("form button")
    expect(page.get_by_role("alert")).to_be_visible()
    page.fill("input[name=key]", mine)
    page.click("form button")
    expect(page).to_have_url(re.compile("/usage$"))
    expect(page.locator(".tile").filter(has_text="Spend")).to_contain_text("$0.06")
    expect(page.locator("#spend canvas")).to_be_visible()
    expect(page.get_by_role("table", name="By model")).to_contain_text("painter")
    page.locator("#spend summary").click()
    expect(page.locator("#spend table")).to_contain_text("$0.06")
    assert owner.accessibility() == []

    page.get_by_role("link", name="Requests").first.click()
    expect(page.locator("tbody tr[data-href]")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/usage/requests/{ids[-1]}$"))
    expect(page.get_by_role("table", name="Price lines")).to_contain_text("$0.03")
    expect(page.get_by_text("Where the time went")).to_be_visible()
    assert "margin" not in page.content().lower()
    assert owner.accessibility() == []
    page.goto(f"/usage/requests/{foreign}")
    expect(page.locator("main")).to_contain_text(re.compile("no such request", re.IGNORECASE))
    page.goto(f"/usage/requests?id={foreign}")
    expect(page.locator("tbody tr[data-href]")).to_have_count(0)
    page.goto("/admin/requests")
    expect(page).to_have_url(re.compile("/admin/sign-in"))

    page.goto("/usage")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/usage/sign-in"))
    page.goto("/usage/requests")
    expect(page).to_have_url(re.compile("/usage/sign-in"))


def test_files_that_are_taken_along_say_what_the_page_says(
    visitor: Callable[..., Visit], site: System, requests_of: dict[str, list[str]]
) -> None:
    (mine, ids), _ = requests_of.items()
    owner = visitor()
    owner.sign_in(mine, "/usage")
    page = owner.page
    page.goto("/usage/requests")
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").read_text())))
    assert {row["id"] for row in rows} == set(ids)
    assert {row["charge_nanos"] for row in rows} == {"30000000"}
    told = json.loads(download(page, "JSON").read_text())
    listed = told if isinstance(told, list) else next(each for each in told.values() if isinstance(each, list))
    assert {row["id"] for row in listed} == set(ids)
    table = arro3.io.read_parquet(str(download(page, "Parquet"))).read_all()
    assert set(table.column("id").to_pylist()) == set(ids)
    assert not {"cost_nanos", "margin_nanos", "route"} & {*rows[0], *table.column_names}
    page.goto("/usage/statements")
    month = page.locator("tbody tr a").first.inner_text()
    assert download(page, "PDF").read_bytes().startswith(b"%PDF-")
    page.get_by_role("link", name=month, exact=True).click()
    expect(page.locator("h1")).to_contain_text("Statement")
    expect(page.get_by_role("table", name="Spending")).to_contain_text("0.06")
    assert owner.accessibility() == []
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Statement")).to_be_hidden()
    assert len(page.pdf(format="A4")) > 1000
