"""Prices in Chromium: one edited and seen by the next request within a second, a backtest published."""

import re
import time
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visit import Visit
from tests.system import System

CALL = {"model": "indexer", "input": {"input": "the price of a thousand words"}}
SETTLED_S = 60.0


def indexed(site: System) -> dict[str, object]:
    """Make a vector, and answer the request with its charge."""
    with site.client() as caller:
        answer = caller.post("/v1/requests", json=CALL, headers={"prefer": "wait=30"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_price_is_edited_and_the_next_request_pays_it(visit: Visit, site: System) -> None:
    before = indexed(site)
    page = visit.page
    page.goto("/admin/models?task=embedding")
    page.get_by_role("link", name="indexer").click()
    expect(page.locator("#f-usd-0")).to_have_value(re.compile(r"0\.0\d+"))
    page.fill("#f-usd-0", "0.06")
    expect(page.locator("#draft-total")).to_have_text("$0.00006")  # as one types: a thousand tokens
    assert visit.accessibility() == []
    page.get_by_role("link", name="Publish …").click()
    page.fill("[name=reason]", "vectors grew")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator("#toasts")).to_contain_text(re.compile(r"Version \d+ is published"))
    published = time.monotonic()
    after = indexed(site)
    while after["price_version"] == before["price_version"]:
        assert time.monotonic() - published < 1.0, "a second later the old price is still asked"
        after = indexed(site)
    assert int(str(after["charge_nanos"])) > int(str(before["charge_nanos"]))
    expect(page.locator("#history tbody tr").first).to_contain_text("vectors grew")


def test_a_backtest_of_a_draft_is_followed_and_published(visit: Visit, site: System) -> None:
    charged = indexed(site)
    page = visit.page
    page.goto("/admin/models/indexer")
    page.fill("#f-usd-0", "0.12")
    expect(page.locator("#draft-total")).to_have_text("$0.00012")
    page.get_by_role("button", name="Rate them again").click()
    expect(page.locator("#backtest")).to_contain_text("Said, not hidden", timeout=SETTLED_S * 1000)
    assert visit.accessibility() == []
    page.get_by_role("link", name="To the draft").click()
    expect(page.locator("#f-usd-0")).to_have_value("0.12")
    page.get_by_role("link", name="Publish …").click()
    expect(page.locator(".effects")).to_contain_text(re.compile(r"\d+ keys, \+\$\S+ \(\+\d+%\) on the last 30 days"))
    page.get_by_role("button", name="Publish").click()
    expect(page.locator("#toasts")).to_contain_text("is published")
    assert int(str(charged["price_version"])) > 0


def test_a_price_is_scheduled_and_called_off_without_scripts(visitor: Callable[..., Visit], site: System) -> None:
    visit = visitor(scripts=False)
    visit.sign_in(site.admin_key)
    page = visit.page
    page.goto("/admin/models/indexer")
    page.fill("#f-usd-0", "0.5")
    page.fill("[name=at]", "2030-01-01 00:00")
    page.get_by_role("button", name="Look at the draft").click()
    page.get_by_role("link", name="Schedule …").click()
    page.fill("[name=reason]", "a new decade")
    page.get_by_role("button", name="Schedule").click()
    row = page.locator("tbody tr").filter(has_text="a new decade")
    expect(row).to_contain_text("scheduled")
    row.get_by_role("link", name="Call off").click()
    page.get_by_role("button", name="Call it off").click()
    expect(page.locator("tbody tr").filter(has_text="a new decade")).to_contain_text("cancelled")
