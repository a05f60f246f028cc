"""The admin API opens to the admin key, and to nothing that looks like it."""

from collections.abc import AsyncIterator

import httpx
import pytest
from litestar import Litestar, Router, get

from gateway.admin.guard import admin_guard
from gateway.errors import FaregateError
from gateway.http.errors import handle_faregate

ADMIN_KEY = "an-admin-key-of-some-length"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    @get("/open")
    async def opened() -> str:
        return "open"

    app = Litestar(
        [Router("/admin", route_handlers=[opened], guards=[admin_guard(ADMIN_KEY)])],
        exception_handlers={FaregateError: handle_faregate},
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
