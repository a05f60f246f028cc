"""A real Chromium, and a running system for it to look at.

`site` is one system with the fake engine for all modules of a process: take names that no other test takes. `page` is
signed in by the admin key, `owner_page` by an API key of its own; both fail a test that leaves an error in the console,
an exception in a script, or a request that the Content-Security-Policy refused. `visitor` makes more of them.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.browser import NoBrowser, make
from tests.conftest import absent
from tests.ledger.patience import amid_a_day
from tests.rooms import enter, leave
from tests.system import System, running_system

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.visit import Visit

ROOT = Path(__file__).parents[2]
CATALOG = Path(__file__).parent / "catalog.yaml"
collect_ignore_glob = [] if os.environ.get("CI") or find_spec("playwright") else ["test_*.py"]


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Answer the path of a Chromium; installed where it may be, which takes a quarter of a minute."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of a run take turns
        try:
            return make()
        except NoBrowser as reason:
            absent(reason)
            raise


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator["Browser"]:
    """Answer a Chromium that runs for the tests of a module.

    No longer: while Playwright runs, its event loop counts as running in this thread, and no asynchronous test can.
    """
    from playwright.sync_api import sync_playwright

    from tests.browser.visit import FLAGS

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(chromium), args=FLAGS, timeout=120_000)
        yield started
        started.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a running system with the fake engine and the catalog of this folder."""
    folder = tmp_path_factory.mktemp("browser-system")
    folder.chmod(0o711)  # Postgres runs as another user
    environ = {"FAREGATE_FETCH_ALLOW": "127.0.0.1"}  # webhooks to a receiver of a test
    system = enter(running_system(folder / "data", "--catalog", str(CATALOG), environ=environ))
    system.wait_ready("scribe", "painter")
    yield system
    leave()


@pytest.fixture
def visitor(browser: "Browser", site: System) -> Iterator[Callable[..., "Visit"]]:
    """Answer what makes visits; each ends with the test, which fails if anything went wrong in the browser."""
    from tests.browser.visit import Visit

    amid_a_day()
    visits: list[Visit] = []

    def visit(**options: object) -> Visit:
        visits.append(Visit(browser, site.base_url, **options))  # type: ignore[arg-type]
        return visits[-1]

    yield visit
    for each in visits:
        each.end()


@pytest.fixture
def visit(visitor: Callable[..., "Visit"], site: System) -> "Visit":
    """Answer a visit that is signed in as owner of the system."""
    made = visitor()
    made.sign_in(site.admin_key)
    return made


@pytest.fixture
def page(visit: "Visit") -> "Page":
    """Answer a page that is signed in by the admin key."""
    return visit.page
