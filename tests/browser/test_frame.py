"""What the frame of every page does with scripts: dialogs, keys, themes; and what its guards stop."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visit import Visit
from tests.system import System


def test_a_question_is_a_dialog_that_escape_closes(visitor: Callable[..., Visit], site: System) -> None:
    visit = visitor()
    visit.sign_in(site.admin_key)
    visit.page.goto("/admin/accounts")
    visit.page.get_by_role("link", name="New account").click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator("input[name=name]")).to_be_visible()
    expect(visit.page).to_have_url(re.compile("/admin/accounts$"))
    visit.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_keys_lead_from_page_to_page(visitor: Callable[..., Visit], site: System) -> None:
    visit = visitor()
    visit.sign_in(site.admin_key)
    visit.page.goto("/admin/books")
    visit.page.keyboard.type("gk")  # in one, as a second between them makes two keys of them
    expect(visit.page).to_have_url(re.compile("/admin/keys"))
    visit.page.keyboard.press("?")
    expect(visit.page.get_by_role("heading", name="Keyboard")).to_be_visible()
    visit.page.keyboard.press("Escape")
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("webhooks")
    visit.page.keyboard.press("Enter")
    expect(visit.page).to_have_url(re.compile("/admin/webhooks"))


def test_a_theme_holds_from_page_to_page(visitor: Callable[..., Visit], site: System) -> None:
    visit = visitor(theme="light")
    visit.sign_in(site.admin_key)
    before = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    visit.page.get_by_label("Theme").select_option("dark")
    dark = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != before
    visit.page.goto("/admin/keys")
    expect(visit.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_the_period_is_chosen_without_a_button_and_goes_along(visitor: Callable[..., Visit], site: System) -> None:
    visit = visitor()
    visit.sign_in(site.admin_key)
    visit.page.goto("/admin/requests")
    visit.page.get_by_label("Range").select_option("7d")
    expect(visit.page).to_have_url(re.compile(r"range=7d"))
    visit.page.get_by_role("link", name="Models").first.click()
    expect(visit.page).to_have_url(re.compile(r"/admin/models\?.*range=7d"))


def test_markup_that_got_in_runs_nothing(visitor: Callable[..., Visit], site: System) -> None:
    """Were a name not escaped after all: no script of it runs, no style holds, and htmx does not obey it."""
    visit = visitor()
    visit.forgive("Content Security Policy", "[hx-csp]", "This document requires")
    visit.sign_in(site.admin_key)
    visit.page.goto("/admin/accounts")
    visit.clear()
    refused = visit.page.evaluate(
        """() => {
          try { document.body.insertAdjacentHTML("beforeend", "<b>x</b>"); return false; } catch { return true; }
        }"""
    )
    assert refused
    visit.page.evaluate(
        """() => {
          const bad = document.createElement("a");
          bad.id = "bad";
          bad.setAttribute("hx-get", "/admin/keys");
          bad.setAttribute("hx-trigger", "load");
          try { bad.setAttribute("onclick", "window.ran = true"); } catch { /* refused at once */ }
          document.querySelector("#main").append(bad);
          htmx.process(bad);
          bad.click();
          const script = document.createElement("script");
          try { script.setAttribute("src", "data:text/javascript,window.ran=true"); } catch { /* refused at once */ }
          document.body.append(script);
        }"""
    )
    expect(visit.page.locator("#bad[hx-get]")).to_have_count(0)
    assert visit.page.evaluate("window.ran") is None
    assert [address for address in visit.requests if address.endswith("/admin/keys")] == []
