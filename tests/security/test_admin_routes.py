"""Every route that changes something asks who wants it: the route table says which there are, new ones too."""

import re
from collections.abc import Iterator, Sequence

import httpx
import msgspec
import pytest
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import ASGIRoute, HTTPRoute

from gateway.admin.site.roles import ROLES, may
from gateway.app.create import create_app
from gateway.app.parts import Parts
from gateway.app.site import create_site
from gateway.settings import load_settings
from tests.second_gateway import second_gateway
from tests.system import System

READS = {"GET", "HEAD", "OPTIONS"}
FILLED = {"int": "999999999", "uuid": "0190a000-0000-7000-8000-000000000000"}
"""Nobody's: what a role may do is asked of the system that other tests share."""
KEYS = {"billing": "the-billing-key-of-these-routes", "viewer": "the-viewer-key-of-these-routes"}
FOR_BILLING = {"accounts", "backtests", "books", "keys", "price-lists", "prices", "requests"}
"""What is about money; all else that changes is for owners alone."""
PAYMENTS = "/payments/"
"""Signed by who sends them, and taken with a secret only."""


class Way(msgspec.Struct, frozen=True, order=True):
    """One method of one address."""

    method: str
    path: str


def ways(app: Litestar) -> Iterator[Way]:
    """Give every method of every address, with its parameters filled in."""
    for route in app.routes:
        path = re.sub(r"\{\w+:(\w+)\}", lambda found: FILLED.get(found[1], "x"), route.path)
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                assert isinstance(handler, HTTPRouteHandler)
                yield Way(str(method), path)
        elif isinstance(route, ASGIRoute):
            yield Way("POST", path)  # a hot one, which takes calls


@pytest.fixture(scope="module")
def table(system: System) -> Sequence[Way]:
    """Answer the route table of the very program that runs."""
    environ = {
        "FAREGATE_ADMIN_KEY": system.admin_key,
        "FAREGATE_DATABASE_URL": system.database_url,
        "FAREGATE_REDIS_URL": system.redis_url,
        "FAREGATE_BLOB_URL": str(system.data / "blobs"),
    }
    settings = load_settings(environ)
    return sorted({*ways(create_app(settings).litestar), *ways(create_site(Parts(settings), None))})


@pytest.fixture(scope="module")
def guarded(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Answer a client of a gateway that knows a key of each role."""
    log = tmp_path_factory.mktemp("routes") / "gateway.log"
    environ = {f"FAREGATE_{role.upper()}_KEY": key for role, key in KEYS.items()}
    with (
        second_gateway(system, log, environ) as gateway,
        httpx.Client(base_url=gateway.base_url, timeout=60.0) as client,
    ):
        yield client


def asked(client: httpx.Client, way: Way, key: str | None = None) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return client.request(way.method, way.path, headers=headers, content=b"{}")


def test_nothing_changes_for_who_says_not_who_they_are(table: Sequence[Way], guarded: httpx.Client) -> None:
    changes = [way for way in table if way.method not in READS and not way.path.startswith(("/admin/", "/usage"))]
    assert len(changes) > 25
    for way in changes:
        answer = asked(guarded, way)
        allowed = {404} if way.path.startswith(PAYMENTS) else {400, 401, 403}  # 400: a body is read before its key
        assert answer.status_code in allowed, (way, answer.status_code, answer.text[:200])


def test_the_admin_api_is_closed_to_all_but_operators(
    system: System, table: Sequence[Way], guarded: httpx.Client
) -> None:
    ours = [way for way in table if way.path.startswith("/admin/api")]
    assert len(ours) > 40
    for way in ours:
        for key in (None, system.api_key, "x" * 40):
            answer = asked(guarded, way, key)
            assert answer.status_code in ({401} if way.method != "OPTIONS" else {204, 401, 405}), (way, answer.text)


@pytest.mark.parametrize("role", [role for role in ROLES if role != "owner"])
def test_each_role_changes_what_it_is_for_and_nothing_else(
    table: Sequence[Way], guarded: httpx.Client, role: str
) -> None:
    """Reading is for all of them; what may be changed is refused for its body only, which says nothing."""
    for way in table:
        if not way.path.startswith("/admin/api/") or way.method == "OPTIONS":
            continue
        first = way.path.split("/")[3]
        needs = "viewer" if way.method in READS else "billing" if first in FOR_BILLING else "owner"
        if way.method not in READS and may(role, needs) and first not in ("prices", "accounts", "keys"):
            continue  # some take an empty body, and would be done
        answer = asked(guarded, way, KEYS[role])
        if may(role, needs):
            assert answer.status_code not in (401, 403, 500), (way, answer.text)
        else:
            assert answer.status_code == 403, (way, answer.text)
            assert answer.json()["error"]["code"] == "role_needed"
