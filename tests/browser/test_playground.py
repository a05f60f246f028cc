"""The playground in a real browser: a picture, its quote before it runs, its charge and its waterfall after."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.visit import Visit
    from tests.system import System


def test_a_picture_is_quoted_as_one_types_run_and_seen(page: "Page", visit: "Visit") -> None:
    page.goto("/admin/playground?model=painter")
    quote = page.locator("#quote")
    expect(quote).to_contain_text("$0.03")
    page.fill("#p-n", "3")
    expect(quote).to_contain_text("$0.09")
    page.fill("#p-n", "1")
    expect(quote).to_contain_text("$0.03")
    page.get_by_role("button", name="Run", exact=True).click()
    run = page.locator(".run")
    expect(run.locator(".badge")).to_have_text("succeeded")
    picture = run.locator(".medium img").first
    expect(picture).to_be_visible()
    picture.evaluate("image => image.decode()")
    assert picture.evaluate("image => image.naturalWidth") == 256
    expect(run).to_contain_text("Charged $0.03 of at most $0.03")
    expect(run.locator("svg.waterfall").first).to_be_visible()
    assert visit.accessibility() == []


def test_two_models_are_compared_and_their_words_stream(page: "Page") -> None:
    page.goto("/admin/playground?model=scribe&beside=sage")
    expect(page.locator(".quote")).to_have_count(2)
    page.get_by_role("button", name="Run both").click()
    expect(page.locator(".run")).to_have_count(2)
    expect(page.locator(".run .badge").first).to_have_text("succeeded")
    expect(page.locator(".run .badge").last).to_have_text("succeeded")
    expect(page.locator(".run .said").first).to_contain_text("the gate opens")
    page.locator(".run").first.get_by_text("The call in curl").click()
    page.locator(".run").first.get_by_label("Python").check()
    expect(page.locator(".run").first.locator(".pane:visible")).to_contain_text("from openai import OpenAI")


def test_without_scripts_it_is_quoted_and_run_all_the_same(visitor: "Callable[..., Visit]", site: "System") -> None:
    bare = visitor(scripts=False)
    bare.sign_in(site.admin_key)
    bare.page.goto("/admin/playground?model=painter")
    bare.page.get_by_role("button", name="Quote").click()
    expect(bare.page.locator("#quote")).to_contain_text("$0.03")
    bare.page.get_by_role("button", name="Run", exact=True).click()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if bare.page.locator(".badge").first.inner_text() == "succeeded":
            break
        bare.page.get_by_role("link", name="Look again").click()
    expect(bare.page.locator(".medium img").first).to_be_visible()
