"""What callers and operators can write is shown as text: no page runs it, and no spreadsheet takes it for a formula."""

import csv
import io
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from tests.admin.conftest import token_of
from tests.flow.test_requests import finished
from tests.system import System

EVIL = '=HYPERLINK("http://evil")\'><script>alert(1)</script><img src=x onerror=alert(1)>'
SHORT = "=1<script>alert(1)</script>"
RAW = ("<script>alert", "<img src=x", "onerror=alert(1)>")
MOST_PAGES = 160
SAME = re.compile(r"[?&#].*")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?%?")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Told:
    """Where the evil text was put, and who may read it."""

    def __init__(self, system: System, account_id: int, secret: str) -> None:
        self.system = system
        self.account_id = account_id
        self.secret = secret


@pytest.fixture(scope="module")
def told(system: System) -> Told:
    """Write it into every text that anybody can write."""
    with system.admin() as admin:

        def sent(path: str, **body: object) -> httpx.Response:
            answer = admin.post(f"/admin/api{path}", json=body)
            assert answer.is_success, (path, answer.text)
            return answer

        account_id: int = sent("/accounts", name=f"{EVIL}{time.time_ns()}", balance_nanos=10**9).json()["id"]
        made = sent("/keys", account_id=account_id, name=EVIL, models=["fake-*"]).json()
        sent(f"/accounts/{account_id}/adjust", amount_nanos=5, reason=EVIL)
        sent(f"/accounts/{account_id}/top-up", amount_nanos=5, reason=EVIL)
        sent(f"/accounts/{account_id}/alert-url", alert_url=f"https://receiver.example/?{SHORT}")
        sent("/keys", account_id=account_id, name=f"@{EVIL}")
        price_list = f"evil-{account_id}"
        sent("/price-lists", name=price_list)
        price = [{"usd": "0.001", "per": "request"}]
        sent("/prices", model="fake-chat", price_list=price_list, price=price, reason=EVIL)
        sent(f"/keys/{made['id']}/limits", budgets={"day": 10**12})
        request_id = call(system, made["key"])
        sent(f"/requests/{request_id}/refunds", amount_nanos=1, reason=EVIL)
        lines = [{"side": f"account:{account_id}", "amount_nanos": 7}, {"side": "outside", "amount_nanos": -7}]
        sent("/books/corrections", lines=lines, reason=EVIL)
    return Told(system, account_id, made["key"])


def call(system: System, secret: str) -> str:
    """Call with the text wherever a caller can write, and fail at it, too; answers the id of what was charged."""
    body = {"messages": [{"role": "user", "content": EVIL}]}
    given = {"model": "fake-chat", "input": body, "metadata": {SHORT: EVIL}}
    with system.client(secret) as client:
        accepted = client.post("/v1/requests", json=given, headers={"idempotency-key": SHORT})
        assert accepted.status_code == 202, accepted.text
        failing = body | {"messages": [{"role": "user", "content": f"fake:fail {EVIL}"}]}
        client.post("/v1/requests", json={"model": "fake-chat", "input": failing})
        client.post("/v1/requests", json={"model": EVIL, "input": body})
        request_id: str = accepted.json()["id"]
        assert finished(client, request_id)["status"] == "succeeded"
    return request_id


@contextmanager
def signed_in(system: System, home: str, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=system.base_url, timeout=60.0) as client:
        form = client.get(f"{home}/sign-in")
        answer = client.post(f"{home}/sign-in", data={"csrf_token": token_of(form.text), "key": key})
        assert answer.status_code == 303, answer.text
        yield client


def drawn(client: httpx.Client, path: str) -> httpx.Response:
    """Open a page; again while Postgres is too slow for it, as it is on a machine that stands still for a moment."""
    end = time.monotonic() + 60
    while (answer := client.get(path)).status_code == 503 and time.monotonic() < end:
        time.sleep(0.2)
    return answer


def crawled(client: httpx.Client, *first: str) -> Iterator[httpx.Response]:
    """Follow the links of pages, each address with a few of its queries only; streams of events are left alone."""
    home = "/" + first[0].strip("/").partition("/")[0]
    waiting, known, shapes = list(first), set(first), dict[str, int]()
    for _ in range(MOST_PAGES):
        if not waiting:
            return
        path = waiting.pop(0)
        answer = drawn(client, path)
        yield answer
        if answer.headers.get("content-type", "").startswith("text/html"):
            for link in re.findall(r'href="(/[^"]*)"', answer.text):
                target = link.replace("&amp;", "&")
                shape = re.sub(r"\d+", "0", re.sub(r"[0-9a-f]{32}|[0-9a-f-]{36}", "id", SAME.sub("", target)))
                shapes[shape] = shapes.get(shape, 0) + (target not in known)
                fresh = target not in known and shapes[shape] <= 3 and "sign-out" not in target
                if fresh and urlsplit(target).path.startswith(home) and not target.endswith(("/live", "/parquet")):
                    known.add(target)
                    waiting.append(target)


def hold(answer: httpx.Response) -> int:
    """Check one answer; answers how often the text stands in it, harmless."""
    kind = answer.headers.get("content-type", "")
    assert answer.status_code < 500, (answer.url, answer.text[:500])
    if kind.startswith("text/html"):
        for raw in RAW:
            assert raw not in answer.text, (answer.url, raw)
        return answer.text.count("&lt;script&gt;alert(1)")
    if kind.startswith("text/csv"):
        found = 0
        for row in csv.reader(io.StringIO(answer.text)):
            for cell in row:
                assert not cell.startswith(FORMULA) or NUMBER.fullmatch(cell), (answer.url, cell)
                found += cell.startswith("'")
        return found
    return 0


ADMIN = (
    *("/admin/accounts", "/admin/keys", "/admin/requests", "/admin/audit", "/admin/prices/lists", "/admin/models"),
    *("/admin/books", "/admin/books/refunds", "/admin/books/corrections", "/admin/webhooks", "/admin/queues", "/admin"),
)


def test_no_page_of_the_dashboard_runs_what_others_wrote(told: Told) -> None:
    with signed_in(told.system, "/admin", told.system.admin_key) as owner:
        exports = [f"{path}.csv" for path in ADMIN]
        of_account = [f"/admin/accounts/{told.account_id}", f"/admin/requests.csv?account={told.account_id}"]
        answers = list(crawled(owner, *ADMIN, *exports, *of_account))
    shown = {str(answer.url.path) for answer in answers if hold(answer)}
    assert {
        "/admin/accounts",
        "/admin/keys",
        "/admin/audit",
        "/admin/books/refunds",
        "/admin/books/corrections",
    } <= shown
    assert {"/admin/accounts.csv", "/admin/keys.csv", "/admin/requests.csv"} <= shown
    assert any(re.fullmatch(r"/admin/requests/req_\w+", path) for path in shown), shown
    assert any(re.fullmatch(r"/admin/audit/\d+", path) for path in shown), shown
    assert len(answers) > 60


def test_no_page_of_an_owner_of_a_key_does(told: Told) -> None:
    with signed_in(told.system, "/usage", told.secret) as owner:
        answers = list(crawled(owner, "/usage", "/usage/requests", "/usage/statements", "/usage?format=csv"))
    assert [hold(answer) for answer in answers if hold(answer)]
    with told.system.client(told.secret) as client:
        for by in ("key", "model", "day", "outcome"):
            answer = client.get("/v1/usage", params={"group_by": by, "format": "csv"})
            assert answer.status_code == 200, answer.text
            hold(answer)
    with told.system.admin() as admin:
        for by in ("account", "key"):
            answer = admin.get("/admin/api/usage", params={"group_by": by, "format": "csv"})
            assert answer.status_code == 200, answer.text
            assert hold(answer), by
