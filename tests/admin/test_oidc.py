"""Signing in by an identity provider: there and back with a whole one, and nothing believed of a lying one."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey
from sqlalchemy import select

from gateway.admin.site.oidc.members import OidcConfig, members_of
from gateway.db.operators import audit
from tests.admin.conftest import ORIGIN, SiteHouse, site_house
from tests.admin.identity import LyingProvider, lying_provider, whole_provider
from tests.admin.sample import SAMPLE_PAGES

MEMBERS = members_of("ada@example.com, Owners", "bill@example.com", "vera@example.com, staff")
START = "/admin/sign-in/oidc?next=/admin/sample"


def config(issuer: str, **more: Any) -> OidcConfig:
    return OidcConfig(issuer=issuer, client_id="faregate", client_secret="a-secret", members=MEMBERS, **more)


@pytest.fixture(autouse=True)
def patient_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider whose machine stalls is not away."""
    monkeypatch.setattr("gateway.admin.site.oidc.provider.TIMEOUT_S", 60.0)


@asynccontextmanager
async def visit(database_url: str, configured: OidcConfig) -> AsyncIterator[tuple[SiteHouse, httpx.AsyncClient]]:
    async with site_house(database_url, SAMPLE_PAGES, oidc=configured) as house, house.client() as client:
        yield house, client


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    users = [
        {"sub": "1", "email": "Ada@Example.com", "email_verified": True},
        {"sub": "2", "email": "ada@example.com", "email_verified": False},
        {"sub": "3", "email": "nobody@example.com", "email_verified": True, "groups": ["Staff", 7]},
    ]
    with whole_provider(*users) as running:
        yield running


async def there_and_back(client: httpx.AsyncClient, subject: str) -> httpx.Response:
    """Go to the provider, say who one is, and come back."""
    away = await client.get(START)
    assert away.status_code == 303
    async with httpx.AsyncClient(timeout=60.0) as elsewhere:
        chosen = await elsewhere.post(away.headers["location"], data={"sub": subject})
        assert chosen.status_code == 302, chosen.text
    return await client.get(chosen.headers["location"].removeprefix(ORIGIN))


async def test_an_owner_signs_in_by_their_provider(module_database_url: str, issuer: str) -> None:
    async with visit(module_database_url, config(issuer)) as (house, client):
        form = await client.get("/admin/sign-in")
        assert "/admin/sign-in/oidc?next=" in form.text
        back = await there_and_back(client, "1")
        assert (back.status_code, back.headers["location"]) == (303, "/admin/sample")
        page = await client.get("/admin/sample")
        assert page.status_code == 200
        assert "Ada@Example.com" in page.text
        async with house.engine.connect() as connection:
            entry = select(audit.c.actor, audit.c.role).order_by(audit.c.id.desc()).limit(1)
            assert tuple((await connection.execute(entry)).one()) == ("Ada@Example.com", "owner")


async def test_an_e_mail_that_nobody_verified_has_no_role(module_database_url: str, issuer: str) -> None:
    async with visit(module_database_url, config(issuer)) as (_, client):
        back = await there_and_back(client, "2")
        assert back.status_code == 403
        assert "no role here" in back.text
        assert "faregate_admin" not in client.cookies


async def test_roles_can_come_from_a_claim(module_database_url: str, issuer: str) -> None:
    async with visit(module_database_url, config(issuer, role_claim="groups")) as (_, client):
        assert (await there_and_back(client, "3")).status_code == 303
        assert (await client.get("/admin/sample/0/stop")).status_code == 403
        assert (await client.get("/admin/sample")).status_code == 200


async def test_without_a_provider_there_is_no_way_to_one(house: SiteHouse) -> None:
    async with house.client() as client:
        assert "oidc" not in (await client.get("/admin/sign-in")).text
        assert (await client.get(START)).status_code == 404


@pytest.fixture(scope="module")
def liar() -> Iterator[LyingProvider]:
    with lying_provider() as running:
        yield running


async def leave(client: httpx.AsyncClient, provider: LyingProvider) -> dict[str, str]:
    """Go as far as the provider, which now would give a right token; answers what the way there carried."""
    away = await client.get(START)
    assert away.status_code == 303, away.text
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away.headers["location"]).query).items()}
    now = int(time.time())
    provider.algorithm, provider.signed_by, provider.challenge = "RS256", provider.key, asked["code_challenge"]
    provider.claims = {
        "iss": provider.issuer,
        "aud": "faregate",
        "sub": "1",
        "exp": now + 300,
        "iat": now,
        "nonce": asked["nonce"],
        "email": "ada@example.com",
        "email_verified": True,
    }
    return asked


async def test_the_way_there_carries_a_challenge_and_no_secret(module_database_url: str, liar: LyingProvider) -> None:
    async with visit(module_database_url, config(liar.issuer)) as (_, client):
        asked = await leave(client, liar)
        assert (asked["code_challenge_method"], asked["response_type"], asked["scope"]) == (
            "S256",
            "code",
            "openid email profile",
        )
        assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
        assert "a-secret" not in str(asked)
        back = await client.get(f"/admin/sign-in/oidc/return?code=the-code&state={asked['state']}")
        assert back.status_code == 303
        again = await client.get(f"/admin/sign-in/oidc/return?code=the-code&state={asked['state']}")
        assert again.status_code == 401


def changed(**claims: Any) -> Callable[[LyingProvider], None]:
    return lambda provider: provider.claims.update(claims)


def unsigned(provider: LyingProvider) -> None:
    provider.algorithm = "none"


def with_a_secret(provider: LyingProvider) -> None:
    provider.algorithm = "HS256"


def of_another_key(provider: LyingProvider) -> None:
    provider.signed_by = RSAKey.generate_key(2048, parameters={"kid": "first"})


LIES: dict[str, Callable[[LyingProvider], None]] = {
    "another issuer": changed(iss="https://evil.example"),
    "for somebody else": changed(aud="another-client"),
    "for several, given to another": changed(aud=["faregate", "another"], azp="another"),
    "over": changed(exp=int(time.time()) - 3600),
    "another nonce": changed(nonce="x"),
    "no nonce": changed(nonce=None),
    "no subject": changed(sub=None),
    "no signature": unsigned,
    "another key": of_another_key,
    "a shared secret": with_a_secret,
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_token_that_does_not_fit_opens_nothing(module_database_url: str, liar: LyingProvider, lie: str) -> None:
    async with visit(module_database_url, config(liar.issuer)) as (_, client):
        asked = await leave(client, liar)
        LIES[lie](liar)
        back = await client.get(f"/admin/sign-in/oidc/return?code=the-code&state={asked['state']}")
        assert back.status_code == 401
        assert "does not fit this sign-in" in back.text
        assert "faregate_admin" not in client.cookies


@pytest.mark.parametrize(
    "query",
    ["code=the-code&state=x", "code=the-code", "state={state}", "state={state}&error=access_denied&code=the-code",
     "code=another&state={state}", "code=the-code&state={state}&iss=https://evil.example"],
)  # fmt: skip
async def test_a_way_back_that_does_not_fit_the_way_there_opens_nothing(
    module_database_url: str, liar: LyingProvider, query: str
) -> None:
    async with visit(module_database_url, config(liar.issuer)) as (_, client):
        asked = await leave(client, liar)
        back = await client.get("/admin/sign-in/oidc/return?" + query.format(state=asked["state"]))
        assert back.status_code == 401
        assert "faregate_admin" not in client.cookies


async def test_another_browser_cannot_finish_the_sign_in(module_database_url: str, liar: LyingProvider) -> None:
    async with visit(module_database_url, config(liar.issuer)) as (house, client):
        asked = await leave(client, liar)
        async with house.client() as victim:
            back = await victim.get(f"/admin/sign-in/oidc/return?code=the-code&state={asked['state']}")
            assert back.status_code == 401


@pytest.mark.parametrize(
    ("endpoints", "said"),
    [
        ({"issuer": "https://evil.example"}, "another name"),
        ({"token_endpoint": "http://evil.example/token"}, "without TLS"),
        ({"jwks_uri": 7}, "cannot be read"),
    ],
)
async def test_a_provider_that_describes_itself_wrongly_is_not_gone_to(
    module_database_url: str, liar: LyingProvider, endpoints: dict[str, Any], said: str
) -> None:
    liar.endpoints = endpoints
    try:
        async with visit(module_database_url, config(liar.issuer)) as (_, client):
            answer = await client.get(START)
            assert answer.status_code == 503
            assert said in answer.text
    finally:
        liar.endpoints = {}


async def test_a_provider_that_is_away_leaves_the_key(module_database_url: str) -> None:
    async with visit(module_database_url, config("http://127.0.0.1:9")) as (_, client):
        answer = await client.get(START)
        assert answer.status_code == 503
        assert 'name="key"' in answer.text
