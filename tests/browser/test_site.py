"""Signing in and out, and what holds for every page: few requests, no fault, accessible, at home on a phone."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gateway.admin.site.nav import ADMIN_PLACES, OWNER_PLACES
from tests.browser.visit import Visit
from tests.system import System

MOST_REQUESTS = 8
LOOKS = ("light", "dark", "phone", "scriptless")
PLACES = {"operator": ADMIN_PLACES, "owner": OWNER_PLACES}


def test_the_admin_key_opens_the_dashboard_and_signing_out_closes_it(
    visitor: Callable[..., Visit], site: System
) -> None:
    visit = visitor()
    visit.page.goto("/admin/keys")
    expect(visit.page).to_have_url(re.compile("/admin/sign-in"))
    assert visit.accessibility() == []
    visit.page.fill("input[name=key]", "wrong")
    visit.forgive("401")
    visit.page.click("form button")
    expect(visit.page.get_by_role("alert")).to_be_visible()
    visit.page.fill("input[name=key]", site.admin_key)
    visit.page.click("form button")
    expect(visit.page).to_have_url(re.compile("/admin/keys$"))
    visit.page.get_by_role("button", name="Sign out").click()
    expect(visit.page).to_have_url(re.compile("/admin/sign-in"))
    visit.page.goto("/admin/keys")
    expect(visit.page).to_have_url(re.compile("/admin/sign-in"))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("who", ["operator", "owner"])
def test_every_page_draws_with_few_requests_and_without_a_fault(
    visitor: Callable[..., Visit], site: System, who: str, look: str
) -> None:
    visit = visitor(theme="dark" if look == "dark" else "light", phone=look == "phone", scripts=look != "scriptless")
    if who == "operator":
        visit.sign_in(site.admin_key)
    else:
        visit.sign_in(site.api_key, "/usage")
    faults = {place.path: faults_of(visit, place.path, look) for place in PLACES[who]}
    assert {path: found for path, found in faults.items() if found} == {}


def faults_of(visit: Visit, path: str, look: str) -> list[str]:
    """Draw a page, and say what it does not keep of what all pages promise."""
    visit.page.goto("about:blank")  # so that nothing of the page before is counted
    visit.clear()
    visit.page.goto(path)
    drawn = list(visit.requests)  # not what the page asks for by and by, while the machine stalls
    expect(visit.page.locator("h1")).to_be_visible()
    found = []
    if len(drawn) > MOST_REQUESTS:
        found.append(f"drawn with {len(drawn)} requests: {drawn}")
    if look == "phone":
        wide = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found += [f"{wide} pixels wider than a phone"] if wide > 0 else []
    if look != "scriptless":
        found += visit.accessibility()
    return found
