"""The page Books in Chromium: its verdict, a correction through the form, and verifying with progress."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visit import Visit
from tests.system import System

WITHIN_MS = 60_000


def test_the_books_are_verified_corrected_and_verified_again(visitor: Callable[..., Visit], site: System) -> None:
    account, _ = site.account("books-in-a-browser", "5")
    visit = visitor()
    visit.sign_in(site.admin_key)
    page = visit.page
    page.goto("/admin/books")
    assert visit.accessibility() == []
    page.get_by_role("link", name="Verify now").click()
    page.get_by_role("dialog").get_by_role("button", name="Verify now").click()
    expect(page).to_have_url(re.compile("/admin/books/runs/"), timeout=WITHIN_MS)
    expect(page.locator("#verdict")).to_contain_text("The books hold")
    assert visit.accessibility() == []

    page.goto("/admin/books")
    page.get_by_role("link", name="Post a correction").click()
    page.fill("input[name=first_side]", f"account:{account}")
    page.fill("input[name=first_usd]", "1.25")
    page.fill("input[name=second_side]", "outside")
    page.fill("input[name=second_usd]", "-1.24")
    page.fill("textarea[name=reason]", "seen in a browser")
    visit.forgive("400")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("alert")).to_contain_text("sum to zero")
    assert visit.accessibility() == []
    page.fill("input[name=second_usd]", "-1.25")
    page.get_by_role("button", name="Review").click()
    expect(page.locator(".effects")).to_contain_text("has $5.00 available, and then $6.25")
    page.get_by_role("button", name="Book", exact=True).click()
    expect(page).to_have_url(re.compile("/admin/books$"))
    expect(page.locator("[data-toast]")).to_contain_text("The correction is booked.")
    expect(page.get_by_role("table", name="Corrections")).to_contain_text("seen in a browser")
    assert site.balance(account)["available_nanos"] == 6_250_000_000


def test_everything_on_the_page_works_without_scripts(visitor: Callable[..., Visit], site: System) -> None:
    visit = visitor(scripts=False)
    visit.sign_in(site.admin_key)
    page = visit.page
    page.goto("/admin/books")
    page.get_by_role("link", name="Verify now").click()
    expect(page).to_have_url(re.compile("/admin/books/verify$"))
    page.get_by_role("button", name="Verify now").click()
    for _ in range(WITHIN_MS // 500):
        if "/runs/" in page.url:
            break
        page.wait_for_timeout(500)
        page.goto(page.url)
    expect(page.locator("#verdict")).to_contain_text("The books hold")
