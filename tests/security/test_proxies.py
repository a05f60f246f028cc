"""Behind reverse proxies: trusted ones are believed, and nobody else, of where a call comes from."""

import time
from collections.abc import Iterator

import httpx
import pytest

from gateway.admin.site.throttle import BURST, EVERY_S
from tests.admin.conftest import token_of
from tests.second_gateway import second_gateway
from tests.security.forwarding import reverse_proxy
from tests.security.test_key_bounds import CALLS, bound
from tests.system import System

TRUSTED, ALSO_TRUSTED, STRANGE = "127.0.0.2", "127.0.0.4", "127.0.0.5"
MINE, OTHER = "127.0.0.9", "127.0.0.10"
GARBAGE = (
    "",
    ",,,",
    "unknown",
    "for=127.0.0.9",
    "127.0.0.9" * 700,
    "\xff\xfe",
    "_hidden, [::1",
    "127.1",
)


class Doors:
    """A gateway that trusts two proxies, and the ways to it."""

    def __init__(self, system: System, direct: str, proxied: str, chained: str, plain: str, strange: str) -> None:
        self.system = system
        self.direct = direct
        self.proxied = proxied
        self.chained = chained
        self.plain = plain
        """Through a trusted proxy that is not reached over TLS."""
        self.strange = strange


@pytest.fixture(scope="module")
def doors(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    log = tmp_path_factory.mktemp("proxied") / "gateway.log"
    environ = {"FAREGATE_TRUSTED_PROXIES": f"{TRUSTED}, {ALSO_TRUSTED}/32, ::1"}
    with (
        second_gateway(system, log, environ) as gateway,
        reverse_proxy(gateway.base_url, TRUSTED) as proxied,
        reverse_proxy(proxied, ALSO_TRUSTED) as chained,
        reverse_proxy(gateway.base_url, TRUSTED, said_proto="http") as plain,
        reverse_proxy(proxied, STRANGE) as strange,
    ):
        yield Doors(system, gateway.base_url, proxied, chained, plain, strange)


@pytest.fixture(scope="module")
def secret(doors: Doors) -> str:
    """Answer a key that may be used from one address only."""
    return bound(doors.system, "at-one-address", addresses=[f"{MINE}/32"])


def browser(base_url: str, source: str) -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=source)
    return httpx.Client(transport=transport, base_url=base_url, timeout=60.0)


def call(base_url: str, secret: str, source: str, *forwarded: str) -> int:
    headers = [("authorization", f"Bearer {secret}"), *(("x-forwarded-for", each) for each in forwarded)]
    method, path, body = CALLS["openai"]
    with browser(base_url, source) as client:
        return client.request(method, path, json=body, headers=headers).status_code


def test_a_trusted_proxy_says_who_calls(doors: Doors, secret: str) -> None:
    assert call(doors.proxied, secret, MINE) == 200
    assert call(doors.chained, secret, MINE) == 200
    assert call(doors.proxied, secret, OTHER) == 403
    assert call(doors.chained, secret, OTHER) == 403


def test_what_a_caller_writes_is_believed_by_no_way(doors: Doors, secret: str) -> None:
    for base_url in (doors.direct, doors.proxied, doors.chained, doors.strange):
        assert call(base_url, secret, OTHER, MINE) == 403, base_url
        assert call(base_url, secret, OTHER, f"{MINE}, {TRUSTED}", MINE) == 403, base_url
    assert call(doors.strange, secret, MINE) == 403
    strangers = bound(doors.system, "at-the-stranger", addresses=[STRANGE])
    assert call(doors.strange, strangers, MINE) == 200


@pytest.mark.parametrize("said", GARBAGE, ids=lambda said: repr(said[:20]))
def test_garbage_is_refused_or_passed_over_and_breaks_nothing(doors: Doors, secret: str, said: str) -> None:
    encoded = said.encode("latin-1")
    for base_url, source, expected in (
        (doors.direct, MINE, 200),
        (doors.proxied, OTHER, 403),
        (doors.proxied, MINE, 200),
    ):
        with browser(base_url, source) as client:
            method, path, body = CALLS["native"]
            headers = {b"authorization": f"Bearer {secret}".encode(), b"x-forwarded-for": encoded}
            answer = client.request(method, path, json=body, headers=headers | {b"prefer": b"wait=60"})
        assert answer.status_code == expected, (base_url, source, answer.text)


def try_to_sign_in(client: httpx.Client, key: str, **headers: str) -> httpx.Response:
    form = client.get("/admin/sign-in", headers=headers)
    return client.post("/admin/sign-in", data={"csrf_token": token_of(form.text), "key": key}, headers=headers)


def tried_until_slowed(thief: httpx.Client) -> list[int]:
    """Try wrong keys until there were too many tries; answers the statuses of those before.

    One more is allowed every few seconds, which all of them may take on a slow machine.
    """
    began, statuses = time.monotonic(), list[int]()
    while True:
        answer = try_to_sign_in(thief, "wrong", **{"x-forwarded-for": f"198.51.100.{len(statuses)}"})
        if answer.status_code == 429:
            assert BURST <= len(statuses) <= BURST + (time.monotonic() - began) / EVERY_S
            return statuses
        statuses.append(answer.status_code)
        assert len(statuses) < 10 * BURST


def test_tries_are_counted_by_caller_and_not_by_proxy(doors: Doors) -> None:
    with browser(doors.plain, "127.0.0.21") as thief, browser(doors.plain, "127.0.0.22") as owner:
        assert set(tried_until_slowed(thief)) == {401}
        assert try_to_sign_in(owner, doors.system.admin_key).status_code == 303
    with browser(doors.direct, "127.0.0.23") as thief:
        assert set(tried_until_slowed(thief)) == {401}


def test_cookies_are_for_tls_where_a_trusted_proxy_says_so(doors: Doors) -> None:
    for base_url, secure in ((doors.proxied, True), (doors.chained, True), (doors.plain, False), (doors.direct, False)):
        with browser(base_url, "127.0.0.24") as client:
            answer = client.get("/admin/sign-in", headers={"x-forwarded-proto": "https"})
        cookies = answer.headers.get_list("set-cookie")
        assert cookies
        assert all(("Secure" in line) is secure for line in cookies), base_url
