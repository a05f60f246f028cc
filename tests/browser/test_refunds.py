"""A request in Chromium: found, its time and money read, its charge given back."""

import re

from playwright.sync_api import expect

from tests.browser.visit import Visit
from tests.system import System


def test_a_charge_is_found_and_given_back(visit: Visit, site: System) -> None:
    page = visit.page
    account_id, secret = site.account("The ferry", "5")
    with site.client(secret) as caller:
        body = {"model": "painter", "input": {"prompt": "a pier", "n": 2}}
        made = caller.post("/v1/requests", json=body, headers={"prefer": "wait=30"})
        assert made.status_code == 200, made.text
    request_id = made.json()["id"]
    page.goto(f"/admin/requests?account={account_id}")
    expect(page.locator("tbody tr[data-href]")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/admin/requests/{request_id}$"))
    expect(page.locator("svg.waterfall .segment").first).to_be_visible()
    expect(page.locator(".medium img").first).to_be_visible()
    assert page.evaluate("document.querySelector('.medium img').decode().then(() => true)")
    assert visit.accessibility() == []

    page.get_by_role("link", name="Refund", exact=True).click()
    expect(page.locator("#dialog .effects")).to_contain_text("has $5.00 available in place of $4.94")
    page.fill("#dialog [name=amount]", "0.02")
    page.fill("#dialog [name=reason]", "The pier is missing")
    page.click("#dialog button:has-text('Give it back')")
    expect(page.locator("#toasts")).to_contain_text("$0.02 is given back.")
    expect(page.locator("#toasts a")).to_have_attribute("href", re.compile(r"/admin/audit/\d+"))
    expect(page.get_by_text("The pier is missing").first).to_be_visible()
    assert site.balance(account_id)["available_nanos"] == 4_960_000_000


def test_what_came_in_waits_behind_its_number(visit: Visit, site: System) -> None:
    page = visit.page
    account_id, secret = site.account("The harbour", "5")
    body = {"model": "painter", "input": {"prompt": "a crane"}}
    with site.client(secret) as caller:
        assert caller.post("/v1/requests", json=body, headers={"prefer": "wait=30"}).status_code == 200
        page.goto(f"/admin/requests?account={account_id}")
        expect(page.locator("tbody tr[data-href]")).to_have_count(1)
        assert caller.post("/v1/requests", json=body, headers={"prefer": "wait=30"}).status_code == 200
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    expect(page.locator("tbody tr[data-href]")).to_have_count(1)
    page.get_by_role("link", name="1 new").click()
    expect(page.locator("tbody tr[data-href]")).to_have_count(2)
