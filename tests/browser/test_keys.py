"""A key's life in Chromium: made, limited, used to its limit, revoked."""

import re
import time

import httpx
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit
from tests.system import System

CALL = {"model": "painter", "input": {"prompt": "a gate at dawn"}}
WITHIN_S = 90.0


def paint(site: System, secret: str) -> httpx.Response:
    """Ask for a picture, and wait for it."""
    with site.client(secret) as caller:
        return caller.post("/v1/requests", json=CALL, headers={"prefer": "wait=30"})


def until_refused(site: System, secret: str, status: int) -> None:
    """Call until the answer is this one: gateways learn of a change within a second."""
    end = time.monotonic() + WITHIN_S
    while (answer := paint(site, secret)).status_code != status:
        assert time.monotonic() < end, f"{answer.status_code} and not {status}: {answer.text}"
        time.sleep(0.1)


def in_dialog(page: Page, name: str) -> None:
    """Follow an action into its dialog."""
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("#dialog")).to_be_visible()


def test_a_key_is_made_limited_used_to_its_limit_and_revoked(visit: Visit, site: System) -> None:
    page = visit.page
    account_id, _ = site.account("The lighthouse", "5")
    page.goto(f"/admin/accounts/{account_id}")
    in_dialog(page, "New key")
    page.fill("#dialog [name=name]", "lamp room")
    page.fill("#dialog [name=budget]", "1")
    page.click("#dialog button:has-text('Make the key')")
    secret = page.locator("code").first.inner_text()
    assert secret.startswith("fg_live_")
    assert visit.accessibility() == []
    page.get_by_role("link", name="I stored it").click()
    expect(page).to_have_url(re.compile(r"/admin/keys/\d+$"))
    assert secret not in page.content()
    until_refused(site, secret, 200)

    in_dialog(page, "Limits")
    page.fill("#dialog [name=day]", "0.08")
    page.click("#dialog button:has-text('Set the limits')")
    expect(page.locator("#toasts")).to_contain_text("The limits of lamp room are set.")
    until_refused(site, secret, 402)
    refused = paint(site, secret)
    assert refused.json()["error"]["code"] == "budget_exceeded"
    assert "of the key's budget of 0.08 for this day" in refused.text
    page.reload()
    expect(page.locator(".card").filter(has_text="Budget a day")).to_contain_text("of $0.08")

    in_dialog(page, "Revoke")
    expect(page.locator("#dialog .effects")).to_contain_text(re.compile(r"Used \d+ times today for \$0\.0\d, last"))
    visit.forgive("422")
    page.fill("#dialog [name=confirm_name]", "lamp")
    page.click("#dialog button:has-text('Revoke it')")
    expect(page.get_by_text("This is not its name.").first).to_be_visible()
    page.fill("[name=confirm_name]", "lamp room")
    page.click("button:has-text('Revoke it')")
    expect(page.locator("#toasts")).to_contain_text("lamp room is revoked.")
    until_refused(site, secret, 401)
    page.goto("/admin/keys?q=lamp+room")
    expect(page.locator("tbody tr")).to_contain_text("revoked")


def test_money_and_a_pause_for_an_account_without_scripts(visitor, site: System) -> None:  # type: ignore[no-untyped-def]
    visit = visitor(scripts=False)
    visit.sign_in(site.admin_key)
    page = visit.page
    account_id, secret = site.account("The keeper", "1")
    page.goto(f"/admin/accounts/{account_id}")
    page.get_by_role("link", name="Top up", exact=True).click()
    page.fill("[name=amount]", "2.50")
    page.fill("[name=reason]", "invoice 12")
    page.click("button:has-text('Book the top-up')")
    expect(page.locator("#toasts")).to_contain_text("$2.50 is booked: The keeper has $3.50 available.")
    page.get_by_role("link", name="Suspend", exact=True).click()
    page.click("button:has-text('Suspend it')")
    expect(page.get_by_text("Suspended since")).to_be_visible()
    until_refused(site, secret, 401)
    page.get_by_role("link", name="Resume", exact=True).click()
    page.click("button:has-text('Resume it')")
    until_refused(site, secret, 200)
