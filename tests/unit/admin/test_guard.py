"""The admin API opens to the admin key, and to nothing that looks like it."""

from collections.abc import AsyncIterator

import httpx
import pytest
from litestar import Litestar, Router, get, post
from litestar.di import NamedDependency, Provide

from gateway.admin.api.guard import actor_of, admin_guard
from gateway.http.errors import native_body
from gateway.http.handlers import handlers_of
from gateway.ledger.audit import Actor

ADMIN_KEY = "an-admin-key-of-some-length"
KEYS = {"owner": ADMIN_KEY, "billing": "a-billing-key-of-some-length", "viewer": "a-viewer-key-of-some-length"}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    @get("/open")
    async def opened() -> str:
        return "open"

    @post("/money", opt={"needs": "billing"})
    async def money(by: NamedDependency[Actor]) -> str:
        return f"{by.name} {by.role} {by.door}"

    @post("/secret")
    async def secret() -> str:
        return "done"

    app = Litestar(
        [
            Router(
                "/admin",
                route_handlers=[opened, money, secret],
                guards=[admin_guard(KEYS)],
                dependencies={"by": Provide(actor_of, sync_to_thread=False)},
            )
        ],
        exception_handlers=handlers_of(native_body),
        openapi_config=None,
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client


async def test_the_admin_key_opens(client: httpx.AsyncClient) -> None:
    answer = await client.get("/admin/open", headers={"authorization": f"Bearer {ADMIN_KEY}"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        ADMIN_KEY,
        f"Basic {ADMIN_KEY}",
        f"Bearer {ADMIN_KEY}x",
        f"Bearer {ADMIN_KEY[:-1]}",
        f"Bearer {ADMIN_KEY.upper()}",
        "Bearer fg_live_x' or '1'='1",
        "Bearer \xff\xfe",
    ],
)
async def test_anything_else_is_the_same_401(client: httpx.AsyncClient, authorization: str | None) -> None:
    headers = {"authorization": authorization.encode("latin-1")} if authorization is not None else {}
    answer = await client.get("/admin/open", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_admin_key"
    assert ADMIN_KEY not in answer.text


@pytest.mark.parametrize(
    ("role", "allowed"), [("viewer", {"open"}), ("billing", {"open", "money"}), ("owner", {"open", "money", "secret"})]
)
async def test_each_role_may_do_what_it_is_for_and_no_more(
    client: httpx.AsyncClient, role: str, allowed: set[str]
) -> None:
    headers = {"authorization": f"Bearer {KEYS[role]}"}
    for method, name in (("GET", "open"), ("POST", "money"), ("POST", "secret")):
        answer = await client.request(method, f"/admin/{name}", headers=headers)
        if name in allowed:
            assert answer.status_code in {200, 201}
        else:
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "role_needed")


@pytest.mark.parametrize(("door", "told"), [(None, "api"), ("cli", "cli"), ("dashboard", "api")])
async def test_the_audit_log_learns_who_came_in_by_which_door(
    client: httpx.AsyncClient, door: str | None, told: str
) -> None:
    headers = {"authorization": f"Bearer {KEYS['billing']}"} | ({"x-faregate-door": door} if door else {})
    answer = await client.post("/admin/money", headers=headers)
    assert answer.text == f"billing key billing {told}"


async def test_a_role_without_a_key_is_closed() -> None:
    @get("/open")
    async def opened() -> str:
        return "open"

    guard = admin_guard({"owner": ADMIN_KEY, "billing": "", "viewer": ""})
    app = Litestar(
        [Router("/admin", route_handlers=[opened], guards=[guard])],
        exception_handlers=handlers_of(native_body),
        openapi_config=None,
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/admin/open", headers={"authorization": "Bearer "})
    assert answer.status_code == 401
