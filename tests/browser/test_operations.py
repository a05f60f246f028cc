"""Queues, webhooks and the audit log in Chromium: what is live moves, and what is ordered happens."""

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from tests.browser.visit import Visit
from tests.system import System

WITHIN_MS = 60_000
PICTURE = {"model": "painter", "input": {"prompt": "a winch"}}


class Receiver(ThreadingHTTPServer):
    """Receives webhooks, and notes their ids."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        super().__init__(("127.0.0.1", 0), _Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.ids.append(self.headers["webhook-id"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def test_a_pool_is_paused_and_a_worker_drained_while_the_page_is_live(visit: Visit, site: System) -> None:
    page = visit.page
    _, secret = site.account("The winch", "5")
    page.goto("/admin/queues")
    pool = page.locator("#pool-films")
    expect(pool).to_contain_text(re.compile("idle|serving"))
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "on")
    pool.get_by_role("link", name="Pause").click()
    expect(page.locator("#dialog .effects")).to_contain_text("running finish, none is taken")
    expect(page.locator("#dialog nav")).to_have_count(0)  # the question alone, and not a page in a page
    page.click("#dialog button:has-text('Pause the pool')")
    expect(page.locator("#toasts")).to_contain_text("films is paused.")
    expect(pool.locator(".badge")).to_have_text("paused")
    assert visit.accessibility() == []
    with site.client(secret) as caller:
        made = caller.post("/v1/requests", json={"model": "filmer", "input": {"prompt": "a winch"}})
        assert made.status_code == 202, made.text
        waiting = page.locator("#waiting-films")  # without a click: the page is live
        expect(waiting).to_contain_text("The winch", timeout=WITHIN_MS)
        expect(pool.locator("td").nth(2)).to_have_text("1")
        page.keyboard.press(".")
        expect(page.locator("[data-live]")).to_have_text("Paused")
        page.keyboard.press(".")
        pool.get_by_role("link", name="Resume").click()
        page.click("#dialog button:has-text('Resume the pool')")
        expect(page.locator("#toasts")).to_contain_text("films goes on.")
        expect(page.locator("#waiting-films")).to_have_count(0, timeout=WITHIN_MS)
        ended = caller.get(f"/v1/requests/{made.json()['id']}", headers={"prefer": "wait=30"})
        assert ended.json()["status"] == "succeeded"

    worker = page.locator("#workers tr").filter(has_text="films")
    worker.get_by_role("link", name="Drain").click()
    page.click("#dialog button:has-text('Drain')")
    expect(page.locator("#toasts")).to_contain_text("takes no more")
    expect(worker.locator(".badge")).to_have_text(re.compile("drain"), timeout=WITHIN_MS)
    worker.get_by_role("link", name="Undo drain").click()
    page.click("#dialog button:has-text('Let it take again')")
    expect(page.locator("#toasts")).to_contain_text("takes again.")
    expect(worker.locator(".badge")).to_have_text(re.compile("idle|serving"), timeout=WITHIN_MS)

    page.goto("/admin/audit?door=dashboard")
    table = page.get_by_role("table", name="Changes")
    for words in ("pool films", "worker"):
        expect(table).to_contain_text(words)
    assert visit.accessibility() == []
    table.locator("tr[data-href] a").first.click()
    expect(page).to_have_url(re.compile(r"/admin/audit/\d+"))
    expect(page.locator("aside .facts")).to_contain_text("dashboard")
    assert visit.accessibility() == []
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert "pool" in download.value.path().read_text()


def test_an_event_is_seen_and_told_again(visitor: Callable[..., Visit], site: System, receiver: Receiver) -> None:
    account_id, secret = site.account("The bell", "5")
    with site.client(secret) as caller:
        body = {**PICTURE, "webhook": receiver.url}
        made = caller.post("/v1/requests", json=body, headers={"prefer": "wait=30"})
        assert made.status_code == 200, made.text
    visit = visitor()
    visit.sign_in(site.admin_key)
    page = visit.page
    for _ in range(WITHIN_MS // 500):
        page.goto(f"/admin/webhooks?account={account_id}")
        if page.get_by_role("table", name="Deliveries").get_by_text("delivered").count():
            break
        page.wait_for_timeout(500)
    assert visit.accessibility() == []
    page.get_by_role("table", name="Deliveries").locator("tbody a").first.click()
    expect(page.get_by_role("table", name="Tries")).to_contain_text("204")
    assert visit.accessibility() == []
    page.get_by_role("link", name="Redeliver").click()
    expect(page.locator("#dialog .effects")).to_contain_text("again, now, under the same id")
    told = len(receiver.ids)  # once, or oftener where the machine stalled: at least once is what is promised
    page.click("#dialog button:has-text('Redeliver')")
    expect(page.locator("#toasts")).to_contain_text("is told again.")
    for _ in range(WITHIN_MS // 500):
        if len(receiver.ids) > told:
            break
        page.wait_for_timeout(500)
    assert len(receiver.ids) > told > 0
    assert len(set(receiver.ids)) == 1
    page.goto(f"/admin/webhooks?account={account_id}")
    page.get_by_role("link", name="Send a test").click()
    page.click("#dialog button:has-text('Send')")
    expect(page.locator("#toasts")).to_contain_text("The test arrived: 204")
    page.goto(f"/admin/webhooks?account={account_id}")
    page.get_by_role("link", name="Redeliver all of these").click()
    expect(page.locator("#dialog .effects")).to_contain_text(f"1 events match (account {account_id})")
