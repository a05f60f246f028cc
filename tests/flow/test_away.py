"""While Postgres or Redis is away pages say so, calls are told to come again, and all goes on when it is back."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.admin.conftest import token_of
from tests.flow.lines import Line
from tests.flow.test_limits import CHAT, PATH
from tests.second_gateway import second_gateway
from tests.system import System

PAGES = (
    *("/admin", "/admin/models", "/admin/accounts", "/admin/keys", "/admin/requests", "/admin/queues", "/admin/books"),
    *("/admin/webhooks", "/admin/audit", "/admin/playground", "/admin/prices/lists"),
)
SECRETS = ("Traceback", "asyncpg", "sqlalchemy", "redis.exceptions", "postgresql://")
BACK_S = 60.0
RELEASE_S = 150.0
ANSWERED_S = 25.0
"""The longest that anybody waits for a page, on a slow machine, while a server says nothing."""


class Stand:
    """A gateway whose lines to Postgres and Redis can be cut, and a browser that is signed in there."""

    def __init__(self, system: System, base_url: str, postgres: Line, redis: Line) -> None:
        self.system = system
        self.postgres = postgres
        self.redis = redis
        self.browser = httpx.Client(base_url=base_url, timeout=60.0)

    def call(self, secret: str) -> httpx.Response:
        """Call a model."""
        return self.browser.post(PATH, json=CHAT, headers={"authorization": f"Bearer {secret}"})

    def await_back(self, secret: str) -> None:
        """Wait until pages are drawn and calls are served again."""
        end = time.monotonic() + BACK_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                if self.browser.get("/admin/accounts").status_code == 200 and self.call(secret).status_code == 200:
                    return
            assert time.monotonic() < end, "the gateway does not recover"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def stand(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    log = tmp_path_factory.mktemp("away") / "gateway.log"
    with contextlib.ExitStack() as stack:
        postgres, redis = (
            stack.enter_context(contextlib.closing(Line(url))) for url in (system.database_url, system.redis_url)
        )
        environ = {"FAREGATE_DATABASE_URL": postgres.url, "FAREGATE_REDIS_URL": redis.url}
        gateway = stack.enter_context(second_gateway(system, log, environ))
        made = Stand(system, gateway.base_url, postgres, redis)
        stack.enter_context(made.browser)
        form = made.browser.get("/admin/sign-in")
        sent = {"csrf_token": token_of(form.text), "key": system.admin_key}
        assert made.browser.post("/admin/sign-in", data=sent).status_code == 303
        yield made


@pytest.fixture(scope="module")
def payer(stand: Stand) -> tuple[int, str]:
    return stand.system.account("away-payer", "1")


def looked_at(stand: Stand) -> dict[str, httpx.Response]:
    """Open every page; each answers in time, and tells nothing of what it is made of."""
    answers = {}
    for path in (*PAGES, "/admin/keys.csv", "/admin/accounts.json"):
        began = time.monotonic()
        answers[path] = answer = stand.browser.get(path)
        assert time.monotonic() - began < ANSWERED_S, path
        assert not [word for word in SECRETS if word in answer.text], path
        assert answer.status_code in (200, 503), (path, answer.status_code, answer.text[:300])
        assert answer.headers["x-frame-options"] == "DENY"
    return answers


def await_release(stand: Stand, account_id: int) -> None:
    """Wait until nothing is held: what nobody knows the end of is ended by the sweeper, at the latest."""
    end = time.monotonic() + RELEASE_S
    while stand.system.balance(account_id)["held_nanos"]:
        assert time.monotonic() < end, "a hold is left"
        time.sleep(0.2)


@pytest.mark.parametrize("silently", [False, True], ids=["cut", "silent"])
def test_while_postgres_is_away_pages_say_so(stand: Stand, payer: tuple[int, str], silently: bool) -> None:
    assert stand.call(payer[1]).status_code == 200
    (stand.postgres.fall_silent if silently else stand.postgres.cut)()
    try:
        if silently:
            began = time.monotonic()
            told = stand.browser.get("/admin/accounts")
            assert time.monotonic() - began < ANSWERED_S
            answers = {"/admin/accounts": told}
        else:
            answers = looked_at(stand)
        refused = stand.call(payer[1])
    finally:
        stand.postgres.mend()
    for path, answer in answers.items():
        assert answer.status_code == 503, path
        if "." not in path:
            assert 'role="alert"' in answer.text, path
            assert "page_" in answer.text, path
    assert refused.status_code == 503, refused.text
    assert refused.headers["x-should-retry"] == "true"
    stand.await_back(payer[1])
    await_release(stand, payer[0])


def test_while_redis_is_away_pages_are_drawn_with_a_word_of_it_and_no_call_is_lost(
    stand: Stand, payer: tuple[int, str]
) -> None:
    """A call that was admitted waits for Redis for a while; it is run, or ended without a charge."""
    stand.redis.cut()
    with ThreadPoolExecutor(1) as caller:
        try:
            called = caller.submit(stand.call, payer[1])
            answers = looked_at(stand)
            end = time.monotonic() + BACK_S
            for path in [path for path, answer in answers.items() if "Took longer than" in answer.text]:
                while (again := stand.browser.get(path)).status_code != 200:  # Postgres was slow, and is there
                    assert time.monotonic() < end, again.text[:300]
                answers[path] = again
            while "Redis is away" not in stand.browser.get("/admin/queues").text:
                assert time.monotonic() < end, "the page of queues does not say so"
                time.sleep(0.2)
            with httpx.Client(base_url=stand.browser.base_url, timeout=60.0) as other:
                form = other.get("/admin/sign-in")
                sent = {"csrf_token": token_of(form.text), "key": stand.system.admin_key}
                assert other.post("/admin/sign-in", data=sent).status_code == 303
        finally:
            stand.redis.mend()
        assert called.result(BACK_S).status_code in (200, 502, 503)  # 502: Redis was away for too long
    assert {path: answer.status_code for path, answer in answers.items() if answer.status_code != 200} == {}
    stand.await_back(payer[1])
    await_release(stand, payer[0])
