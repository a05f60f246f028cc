"""Signing in and out: sessions are new, ours alone, and dead when they should be."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta

import httpx
import pytest
import redis
from sqlalchemy import func, select, update

from gateway.admin.site import throttle
from gateway.admin.site.sign_in import safe_next
from gateway.admin.site.throttle import BURST, BURST_IN_ALL, EVERY_S, PACE, Throttle
from gateway.db.operators import audit, web_session
from gateway.errors import TooManyRequests
from gateway.queues.tries import Pace, RedisTries
from gateway.queues.wire import Wire
from gateway.stack.ports import free_port
from tests.admin.conftest import OPERATOR_KEYS, SiteHouse, sign_in, site_house, token_of
from tests.admin.sample import SAMPLE_PAGES

COOKIE = "faregate_admin"


def cookie_of(answer: httpx.Response, name: str = COOKIE) -> str:
    lines = [line for line in answer.headers.get_list("set-cookie") if line.startswith(f"{name}=")]
    assert len(lines) == 1, answer.headers
    return lines[0]


async def test_a_key_is_exchanged_for_a_session_that_scripts_cannot_read(house: SiteHouse) -> None:
    async with house.client() as client:
        first = await client.get("/admin/sample?range=7d")
        assert (first.status_code, first.headers["location"]) == (
            303,
            "/admin/sign-in?next=%2Fadmin%2Fsample%3Frange%3D7d",
        )
        page = await client.get(first.headers["location"])
        assert 'name="next" value="/admin/sample?range=7d"' in page.text
        answer = await sign_in(client, OPERATOR_KEYS["owner"], next="/admin/sample?range=7d")
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/sample?range=7d")
        cookie = cookie_of(answer)
        assert {"HttpOnly", "SameSite=lax", "Path=/admin", "Max-Age=43200"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert OPERATOR_KEYS["owner"] not in str(answer.headers)
        shown = await client.get("/admin/sample?range=7d")
        assert shown.status_code == 200
        assert OPERATOR_KEYS["owner"] not in shown.text


async def test_cookies_are_for_tls_where_the_system_is(module_database_url: str) -> None:
    origin = "https://gateway.example"
    async with (
        site_house(module_database_url, SAMPLE_PAGES, base_url=origin) as house,
        house.client(origin) as client,
    ):
        answer = await sign_in(client, OPERATOR_KEYS["viewer"])
        assert all("Secure" in line for line in answer.headers.get_list("set-cookie"))


@pytest.mark.parametrize("key", ["", "x", "the-owner-key-of-this-tesu", "k" * 5000, "\x00", "\u202e"])
async def test_wrong_keys_get_the_same_words_and_no_session(house: SiteHouse, key: str) -> None:
    async with house.client() as client:
        answer = await sign_in(client, key)
        assert answer.status_code == 401
        assert "This key opens nothing here." in answer.text
        assert not [line for line in answer.headers.get_list("set-cookie") if line.startswith(COOKIE)]


async def test_a_session_is_never_one_that_was_brought_along(house: SiteHouse) -> None:
    """Fixation: what somebody else put into the browser opens nothing, before or after."""
    async with house.client() as client:
        client.cookies.set(COOKIE, "chosen-by-somebody-else", path="/admin")
        answer = await sign_in(client, OPERATOR_KEYS["owner"])
        assert "chosen-by-somebody-else" not in cookie_of(answer)
    async with house.client() as other:
        other.cookies.set(COOKIE, "chosen-by-somebody-else", path="/admin")
        assert (await other.get("/admin/sample")).status_code == 303


async def test_signing_in_again_ends_the_session_before(house: SiteHouse) -> None:
    async with house.operator("viewer") as client, house.client() as thief:
        old = client.cookies[COOKIE]
        form = await thief.get("/admin/sign-in")
        client.cookies.set("faregate_before", thief.cookies["faregate_before"], path="/admin")
        fields = {"csrf_token": token_of(form.text), "key": OPERATOR_KEYS["owner"]}
        assert (await client.post("/admin/sign-in", data=fields)).status_code == 303
        assert client.cookies[COOKIE] != old
        thief.cookies.set(COOKIE, old, path="/admin")
        assert (await thief.get("/admin/sample")).status_code == 303


async def test_signing_out_ends_the_session_everywhere(house: SiteHouse) -> None:
    async with house.operator() as client, house.client() as thief:
        thief.cookies.set(COOKIE, client.cookies[COOKIE], path="/admin")
        page = await thief.get("/admin/sample")
        assert page.status_code == 200
        out = await client.post("/admin/sign-out", data={"csrf_token": token_of(page.text)})
        assert (out.status_code, out.headers["location"]) == (303, "/admin/sign-in")
        assert COOKIE not in client.cookies
        assert (await thief.get("/admin/sample")).status_code == 303


@pytest.mark.parametrize("field", ["expires_at", "last_seen_at"])
async def test_a_session_is_over_with_its_time_and_when_it_is_idle(house: SiteHouse, field: str) -> None:
    async with house.operator() as client:
        assert (await client.get("/admin/sample")).status_code == 200
        async with house.engine.begin() as connection:
            await connection.execute(update(web_session).values({field: func.now() - timedelta(hours=4)}))
        assert (await client.get("/admin/sample")).status_code == 303


async def test_the_database_holds_no_token_and_the_audit_log_holds_the_visits(house: SiteHouse) -> None:
    async with house.operator("billing") as client:
        token = client.cookies[COOKIE]
        page = await client.get("/admin/sample")
        await client.post("/admin/sign-out", data={"csrf_token": token_of(page.text)})
    async with house.engine.connect() as connection:
        rows = (await connection.execute(select(web_session))).all()
        assert token not in str(rows)
        entries = select(audit.c.action, audit.c.actor, audit.c.role, audit.c.door).order_by(audit.c.id.desc()).limit(2)
        assert [tuple(row) for row in await connection.execute(entries)] == [
            ("session.end", "billing key", "billing", "dashboard"),
            ("session.open", "billing key", "billing", "dashboard"),
        ]


async def test_an_owner_of_a_key_reads_their_own_pages_until_the_key_is_revoked(house: SiteHouse) -> None:
    key_id, secret = await house.key()
    async with house.client() as client:
        assert (await client.get("/usage/sample")).headers["location"].startswith("/usage/sign-in?next=")
        assert (await sign_in(client, secret[:-1], "/usage")).status_code == 401
        answer = await sign_in(client, secret, "/usage")
        assert "Path=/usage" in cookie_of(answer, "faregate_usage")
        assert (await client.get("/usage/sample")).json()["key"] == key_id
        client.cookies.set(COOKIE, client.cookies["faregate_usage"], path="/admin")
        assert (await client.get("/admin/sample")).status_code == 303
        await house.keys.revoke(key_id)
        await house.keyring.refresh()
        assert (await client.get("/usage/sample")).status_code == 303
        assert (await sign_in(client, secret, "/usage")).status_code == 401


async def test_an_operators_session_is_none_of_a_keys_owner(house: SiteHouse) -> None:
    async with house.operator("owner") as client:
        client.cookies.set("faregate_usage", client.cookies[COOKIE], path="/usage")
        assert (await client.get("/usage/sample")).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://elsewhere.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_another_site_cannot_sign_anybody_in(house: SiteHouse, headers: dict[str, str]) -> None:
    async with house.client() as client:
        page = await client.get("/admin/sign-in")
        fields = {"csrf_token": token_of(page.text), "key": OPERATOR_KEYS["owner"]}
        assert (await client.post("/admin/sign-in", data=fields, headers=headers)).status_code == 403
        assert (await client.post("/admin/sign-in", data=fields)).status_code == 303


async def test_the_form_belongs_to_the_browser_that_loaded_it(house: SiteHouse) -> None:
    async with house.client() as mine, house.client() as other:
        token = token_of((await mine.get("/admin/sign-in")).text)
        await other.get("/admin/sign-in")
        for fields in ({"key": OPERATOR_KEYS["owner"]}, {"key": OPERATOR_KEYS["owner"], "csrf_token": token}):
            assert (await other.post("/admin/sign-in", data=fields)).status_code == 403


@pytest.mark.parametrize(
    ("target", "led_to"),
    [
        ("/admin/models?range=7d", "/admin/models?range=7d"),
        ("/admin", "/admin"),
        ("/admin.csv", "/admin.csv"),
        ("", "/admin"),
        ("//evil.example", "/admin"),
        ("/\\evil.example", "/admin"),
        ("https://evil.example/admin", "/admin"),
        ("javascript:alert(1)", "/admin"),
        ("/adminevil", "/admin"),
        ("/usage", "/admin"),
        ("/admin/sign-out", "/admin"),
        ("/admin/x\r\nset-cookie: a=b", "/admin"),
        ("/admin/\t/evil.example", "/admin"),
    ],
)
def test_after_signing_in_one_stays_here(target: str, led_to: str) -> None:
    assert safe_next(target, "operator") == led_to


async def tried_until_slowed(trying: Callable[[int], Awaitable[None]]) -> int:
    """Try from one address after another; answers how many tries were let through."""
    for number in range(2 * BURST_IN_ALL):
        try:
            await trying(number)
        except TooManyRequests:
            return number
    raise AssertionError("nobody was ever slowed")


async def test_tries_are_slowed_by_address_and_in_all_and_right_ones_are_given_back() -> None:
    now = [1000.0]
    gateway = Throttle(clock=lambda: now[0])
    for _ in range(BURST):
        await gateway.take("192.0.2.1")
    with pytest.raises(TooManyRequests) as slowed:
        await gateway.take("192.0.2.1")
    assert slowed.value.retry_after_s == pytest.approx(EVERY_S)
    await gateway.take("192.0.2.2")
    await gateway.forgive("192.0.2.1")
    await gateway.take("::ffff:192.0.2.1")
    now[0] += EVERY_S
    await gateway.take("192.0.2.1")
    with pytest.raises(TooManyRequests):
        await gateway.take("192.0.2.1")
    assert await tried_until_slowed(lambda number: gateway.take(f"198.51.100.{number}")) < BURST_IN_ALL


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Pace:
    """Let tries come back after hours, and wait for Redis for a minute: none comes back while a test runs slowly."""
    monkeypatch.setattr(throttle, "EVERY_S", 7200.0)
    monkeypatch.setattr(throttle, "EVERY_S_IN_ALL", 600.0)
    monkeypatch.setattr(throttle, "ANSWER_S", 60.0)
    return Pace(burst=BURST, every_s=7200.0, burst_in_all=BURST_IN_ALL, every_s_in_all=600.0)


async def test_all_gateways_count_tries_together_and_a_restart_forgets_none(redis_url: str, slow: Pace) -> None:
    """Each gateway is made anew for each try, as one that is restarted by whoever tries."""
    wire = Wire(redis_url)

    def gateway() -> Throttle:
        return Throttle(RedisTries(wire, slow))

    try:
        for number in range(BURST):
            await gateway().take(f"2001:db8::{number:x}")  # one home
        with pytest.raises(TooManyRequests) as slowed:
            await gateway().take("2001:db8::ffff")
        assert 0 < (slowed.value.retry_after_s or 0) <= slow.every_s
        await gateway().take("2001:db8:0:1::1")
        await gateway().forgive("2001:db8::1")
        await gateway().take("2001:db8::1")
        assert await tried_until_slowed(lambda number: gateway().take(f"192.0.2.{number}")) <= BURST_IN_ALL
        with redis.Redis.from_url(redis_url) as client:
            kept = {key: client.pttl(key) for key in client.scan_iter("fg:{tries}:*")}
        assert len(kept) > BURST
        most_ms = 1000 * max(BURST * slow.every_s, BURST_IN_ALL * slow.every_s_in_all)
        assert all(0 < lasts_ms <= most_ms for lasts_ms in kept.values()), "what was tried is forgotten by itself"
        assert b"192.0.2" not in b"".join(kept)
    finally:
        await wire.close()


@pytest.mark.usefixtures("slow")
async def test_while_redis_is_away_a_gateway_counts_by_itself() -> None:
    wire = Wire(f"redis://127.0.0.1:{free_port()}/0")
    gateway = Throttle(RedisTries(wire, PACE))
    try:
        for _ in range(BURST):
            await gateway.take("192.0.2.1")
        with pytest.raises(TooManyRequests):
            await gateway.take("192.0.2.1")
    finally:
        await wire.close()


@pytest.mark.usefixtures("slow")
async def test_who_tries_keys_is_slowed_even_with_the_right_one(house: SiteHouse) -> None:
    async with house.client() as client:
        answers = [await sign_in(client, "wrong-key") for _ in range(BURST)]
        assert {answer.status_code for answer in answers} == {401}
        slowed = await sign_in(client, OPERATOR_KEYS["owner"])
        assert slowed.status_code == 429
        assert re.search(r"wait \d+ s", slowed.text)


async def test_who_was_slowed_by_one_gateway_is_by_the_next(
    module_database_url: str, redis_url: str, slow: Pace
) -> None:
    wire = Wire(redis_url)
    tries = RedisTries(wire, slow)
    try:
        async with (
            site_house(module_database_url, SAMPLE_PAGES, tries=tries) as one,
            site_house(module_database_url, SAMPLE_PAGES, tries=tries) as other,
        ):
            async with one.client() as client:
                assert [(await sign_in(client, "wrong")).status_code for _ in range(BURST)] == [401] * BURST
            async with other.client() as client:
                assert (await sign_in(client, OPERATOR_KEYS["owner"])).status_code == 429
    finally:
        await wire.close()
