"""A visit of the dashboard in Chromium: one browser context, whose faults are collected."""

from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect

FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]
WAIT_MS = 60_000.0
LASTING_TOASTS = """
{
  const soon = window.setTimeout;
  window.setTimeout = (work, after, ...rest) => soon(work, after === 8000 ? 300000 : after, ...rest);
}
"""
"""A toast leaves after eight seconds, which a machine that stalls can take to look at it."""
SERIOUS = ("serious", "critical")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}

expect.set_options(timeout=WAIT_MS)


class Visit:
    """One context of a browser, with what went wrong in it."""

    def __init__(
        self,
        browser: Browser,
        base_url: str,
        *,
        theme: Literal["light", "dark"] = "light",
        phone: bool = False,
        scripts: bool = True,
    ) -> None:
        self.base_url = base_url
        self.faults: list[str] = []
        self.requests: list[str] = []
        """The addresses that were asked for since `clear`."""
        self._forgiven: list[str] = []
        self._context = browser.new_context(
            base_url=base_url,
            color_scheme=theme,
            viewport=PHONE if phone else DESK,  # type: ignore[arg-type]
            has_touch=phone,
            java_script_enabled=scripts,
            locale="en-US",
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        self._context.set_default_timeout(WAIT_MS)
        self._context.set_default_navigation_timeout(WAIT_MS)
        self._context.add_init_script(LASTING_TOASTS)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        self.page.on("response", self._answered)

    def sign_in(self, key: str, path: str = "/admin") -> None:
        """Sign in with an operator's key, or at /usage with an API key."""
        self.page.goto(f"{path}/sign-in")
        self.page.fill("input[name=key]", key)
        self.page.click("form button")
        self.page.wait_for_url(lambda url: "/sign-in" not in url)

    def forgive(self, *words: str) -> None:
        """Expect faults with these words in them: a test that provokes an error says so."""
        self._forgiven += words

    def clear(self) -> None:
        """Forget which addresses were asked for."""
        self.requests.clear()

    def accessibility(self) -> list[str]:
        """Run axe-core on the page as it stands. Answers its serious and critical findings, a line each."""
        found = Axe().run(self.page).response["violations"]
        return [_finding(each) for each in found if each["impact"] in SERIOUS]

    def end(self) -> None:
        """Close it. Fails the test where something went wrong that was not forgiven."""
        self._context.close()
        left = [fault for fault in self.faults if not any(words in fault for words in self._forgiven)]
        assert left == [], left

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _answered(self, response: Response) -> None:
        self.requests.append(response.url)
        if response.status >= 500:
            self.faults.append(f"{response.status}: {response.url}")


def _finding(violation: dict[str, Any]) -> str:
    nodes, name = violation["nodes"], f"{violation['id']} ({violation['impact']})"
    return f"{name}: {violation['help']}; {len(nodes)} x, first {nodes[0]['html'][:200]}"
