"""An account's life in Chromium: made, paid, corrected, limited, given prices of its own; and its statements."""

import re
import time
from collections.abc import Callable

import httpx
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit
from tests.system import System

WITHIN_S = 90.0


def ask(page: Page, name: str) -> None:
    """Follow an action into its dialog."""
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("#dialog")).to_be_visible()


def told(page: Page, words: str) -> None:
    """Expect a toast that leads to the audit log."""
    expect(page.locator("#toasts")).to_contain_text(words)
    expect(page.locator("#toasts a")).to_have_attribute("href", re.compile(r"/admin/audit/\d+"))


def painted(site: System, secret: str) -> httpx.Response:
    """Ask for a picture, and wait for it."""
    with site.client(secret) as caller:
        body = {"model": "painter", "input": {"prompt": "a weir"}}
        return caller.post("/v1/requests", json=body, headers={"prefer": "wait=30"})


def test_an_account_is_made_topped_up_adjusted_and_limited(visit: Visit, site: System) -> None:
    page = visit.page
    page.goto("/admin/accounts")
    ask(page, "New account")
    visit.forgive("422")
    page.fill("#dialog [name=balance]", "lots")
    page.fill("#dialog [name=name]", "The weir & sons")
    page.click("#dialog button:has-text('Create it')")
    expect(page.get_by_text("An amount in US dollars, such as 12.50").first).to_be_visible()
    page.fill("[name=balance]", "3")
    page.click("button:has-text('Create it')")
    told(page, "The weir & sons is created.")
    account_id = int(page.url.rpartition("/")[2])

    ask(page, "Top up")
    page.fill("#dialog [name=amount]", "2.50")
    page.fill("#dialog [name=reason]", "invoice 7")
    page.click("#dialog button:has-text('Book the top-up')")
    told(page, "$2.50 is booked: The weir & sons has $5.50 available.")
    ask(page, "Adjust")
    expect(page.locator("#dialog .effects")).to_contain_text("at most $5.50 can be taken")
    page.fill("#dialog [name=amount]", "-0.50")
    page.fill("#dialog [name=reason]", "a typing error")
    page.click("#dialog button:has-text('Book the adjustment')")
    told(page, "The weir & sons has $5.00 available.")
    ask(page, "Change the limits")
    page.fill("#dialog [name=day]", "0.05")
    page.click("#dialog button:has-text('Set the limits')")
    told(page, "The limits are set.")
    expect(page.locator(".card").filter(has_text="Budget a day")).to_contain_text("$0.00 of $0.05")
    assert visit.accessibility() == []
    assert site.balance(account_id)["available_nanos"] == 5_000_000_000

    with site.admin() as admin:
        made = admin.post("/admin/api/keys", json={"account_id": account_id, "name": "weir"})
    assert painted(site, made.json()["key"]).status_code == 200
    refused = painted(site, made.json()["key"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "budget_exceeded")
    page.goto(f"/admin/audit?object_id={account_id}&door=dashboard")
    expect(page.get_by_role("table", name="Changes")).to_contain_text("a typing error")


def test_a_list_and_a_discount_are_given_and_the_next_request_pays_them(visit: Visit, site: System) -> None:
    page = visit.page
    account_id, secret = site.account("The aqueduct", "5")
    assert painted(site, secret).json()["charge_nanos"] == 30_000_000
    page.goto("/admin/prices/lists")
    ask(page, "New price list")
    page.fill("#dialog [name=name]", "waterworks")
    page.click("#dialog button:has-text('Make it')")
    expect(page).to_have_url(re.compile("/admin/prices/lists/waterworks$"))
    page.locator("details summary").click()
    page.get_by_role("link", name="painter", exact=True).click()
    expect(page).to_have_url(re.compile(r"/admin/models/painter\?list=waterworks$"))
    expect(page.locator("#f-list")).to_have_value("waterworks")
    page.fill("#f-usd-0", "0.02")
    page.locator("#f-per-0").select_option("image")
    expect(page.locator("#draft-total")).to_have_text("$0.02")
    page.get_by_role("link", name="Publish …").click()
    page.fill("[name=reason]", "they carry water")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator("#toasts")).to_contain_text("is published")

    page.fill(".scope-form [name=account]", "the aqueduct")
    page.get_by_role("button", name="Its list and discount …").click()
    expect(page).to_have_url(re.compile(rf"/admin/accounts/{account_id}/pricing$"))
    page.locator("#f-list").select_option("waterworks")
    painter = page.locator("#outcome tbody tr").filter(has_text="painter")
    expect(painter).to_contain_text("$0.02")
    page.fill("#f-discount", "12.5")
    expect(painter).to_contain_text("$0.0175")
    expect(painter).to_contain_text("-42%")
    assert visit.accessibility() == []
    page.fill("#outcome [name=reason]", "they signed")
    page.get_by_role("button", name="Set its terms").click()
    told(page, "The aqueduct pays the prices of waterworks less 12.5% from now on.")
    expect(page.locator(".card").filter(has_text="Prices")).to_contain_text("12.5%")
    until = time.monotonic() + WITHIN_S
    while (charge := painted(site, secret).json()["charge_nanos"]) != 17_500_000:
        assert time.monotonic() < until, charge
    page.goto("/admin/prices/lists/waterworks")
    expect(page.get_by_role("table", name="Accounts")).to_contain_text("The aqueduct")
    assert visit.accessibility() == []
    page.get_by_role("link", name="Take it off").click()
    page.get_by_role("button", name="Look at the draft").click()  # an empty field says something: no list
    expect(page.locator("#f-list")).to_have_value("")
    expect(page.locator("#outcome")).to_contain_text("pays list prices less 12.5% in place of the prices of waterworks")


def test_a_month_is_read_printed_and_downloaded(visitor: Callable[..., Visit], site: System) -> None:
    account_id, secret = site.account("The lock", "5")
    assert painted(site, secret).status_code == 200
    visit = visitor(theme="dark")
    visit.sign_in(site.admin_key)
    page = visit.page
    page.goto(f"/admin/accounts/{account_id}")
    page.get_by_role("link", name="Statements").click()
    assert visit.accessibility() == []
    page.locator("tbody tr a").first.click()
    expect(page.locator("h1")).to_contain_text("Statement")
    expect(page.get_by_role("table", name="Charges by model")).to_contain_text("painter")
    expect(page.get_by_role("table", name="Balance")).to_contain_text("4.97")
    assert visit.accessibility() == []
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Statement")).to_be_hidden()
    look = page.evaluate("(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))")
    assert look[0] == "rgb(0, 0, 0)"
    assert look[1] in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for paper, points in (("A4", (595, 842)), ("Letter", (612, 792))):
        printed = page.pdf(format=paper)
        boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed)
        assert boxes
        off = [abs(float(length) - wanted) for box in boxes for length, wanted in zip(box, points, strict=True)]
        assert max(off) < 2, boxes
    page.emulate_media(media="screen")
    for name, begin in (("PDF, A4", b"%PDF-"), ("PDF, Letter", b"%PDF-"), ("CSV", b"")):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        content = download.value.path().read_bytes()
        assert content.startswith(begin)
        assert download.value.suggested_filename.startswith(f"statement-{account_id}-")
    assert b"painter" in content
