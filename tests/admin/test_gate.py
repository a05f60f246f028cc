"""What guards every route: found in the route table, so that a new page is covered on the day it is added."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import httpx
import msgspec
import pytest
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from gateway.admin.site.roles import ROLES, may
from gateway.app.parts import Parts
from gateway.app.site import create_site
from gateway.settings import load_settings
from tests.admin.conftest import OPERATOR_KEYS, SiteHouse, sign_in, token_of
from tests.system import System, running_system

FILLED = {"int": "1", "uuid": "0190a000-0000-7000-8000-000000000000"}


class Door(msgspec.Struct, frozen=True):
    """One method of one address of the site."""

    method: str
    path: str
    needs: str


def doors(app: Litestar) -> Iterator[Door]:
    """Every route of the dashboard and the owners' pages, with its parameters filled in."""
    for route in app.routes:
        ours = route.path.startswith(("/admin", "/usage")) and not route.path.startswith("/admin/api")
        if not ours or not isinstance(route, HTTPRoute):
            continue
        path = re.sub(r"\{\w+:(\w+)\}", lambda found: FILLED.get(found[1], "x"), route.path)
        for method, (handler, _) in route.route_handler_map.items():
            if method != "OPTIONS":
                assert isinstance(handler, HTTPRouteHandler)
                assert "needs" in handler.opt, route.path
                yield Door(str(method), path, handler.opt["needs"])


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The whole product, with a key for each role."""
    folder = tmp_path_factory.mktemp("gate")
    folder.chmod(0o711)
    environ = {f"FAREGATE_{role.upper()}_KEY": OPERATOR_KEYS[role] for role in ("billing", "viewer")}
    with running_system(folder / "data", engines="fake", environ=environ) as running:
        yield running


@pytest.fixture(scope="module")
def table(product: System) -> Sequence[Door]:
    """Every door of the product, from the route table of the very gateway that it runs."""
    environ = {
        "FAREGATE_ADMIN_KEY": product.admin_key,
        "FAREGATE_DATABASE_URL": product.database_url,
        "FAREGATE_REDIS_URL": product.redis_url,
        "FAREGATE_BLOB_URL": str(product.data / "blobs"),
    }
    return list(doors(create_site(Parts(load_settings(environ)), None)))


@pytest.fixture
async def client(product: System) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at the whole product, which is content with the head of a stream."""
    transport = Heads()
    async with httpx.AsyncClient(transport=transport, base_url=product.base_url, timeout=60.0) as browser:
        yield browser


class Heads(httpx.AsyncHTTPTransport):
    """Reads no stream of events, which would never end."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            await answer.aclose()
            return httpx.Response(answer.status_code, headers=answer.headers)
        return answer


async def test_every_page_needs_a_session_but_the_sign_in(table: Sequence[Door], client: httpx.AsyncClient) -> None:
    closed = [door for door in table if door.needs != "anyone"]
    assert len(closed) >= 4
    for door in closed:
        answer = await client.request(door.method, door.path)
        assert answer.status_code in ({303, 401} if door.method == "GET" else {401}), door
        if answer.status_code == 303:
            assert "/sign-in?next=" in answer.headers["location"], door
    anyone = {door.path for door in table if door.needs == "anyone"}
    assert {path for path in anyone if "sign-in" not in path} == {"/admin/x", "/usage/x"}


@pytest.mark.parametrize("headers", [{}, {"x-csrf-token": "x" * 32}, {"origin": "https://evil.example"}])
async def test_no_change_is_taken_without_the_sessions_token(
    product: System, table: Sequence[Door], client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    """The whole matrix: each POST, in a signed-in owner's browser, as another site would send it."""
    await sign_in(client, product.admin_key)
    page = await client.get("/admin/nowhere")
    token = token_of(page.text)
    changes = [door for door in table if door.method != "GET"]
    assert {door.method for door in changes} == {"POST"}
    for door in changes:
        if door.needs == "anyone" and "sign-in" not in door.path:
            continue
        if door.needs == "key":
            continue  # a session of another kind; below
        sent = dict(headers)
        if "origin" in sent:
            sent["x-csrf-token"] = token
        answer = await client.post(door.path, headers=sent, data={"name": "x"})
        assert answer.status_code == 403, door
        assert "did not come from a page of ours" in answer.text, door


async def test_no_change_of_a_keys_owner_is_taken_without_their_token(house: SiteHouse) -> None:
    _, secret = await house.key()
    async with house.client() as browser:
        await sign_in(browser, secret, "/usage")
        assert (await browser.post("/usage/sign-out")).status_code == 403
        assert (await browser.get("/usage/sample")).status_code == 200


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_opens_what_it_may_and_nothing_else(
    product: System, table: Sequence[Door], client: httpx.AsyncClient, role: str
) -> None:
    """The whole matrix: 403 with the reason exactly where the role is too low."""
    await sign_in(client, {**OPERATOR_KEYS, "owner": product.admin_key}[role])
    token = token_of((await client.get("/admin/nowhere")).text)
    for door in table:
        if door.needs not in ROLES or "sign-out" in door.path:
            continue
        if door.method == "POST" and may(role, door.needs):
            continue  # it would be done; the pages' own tests do it
        headers = {"x-csrf-token": token} if door.method == "POST" else {}
        answer = await client.request(door.method, door.path, headers=headers)
        if may(role, door.needs):
            assert answer.status_code != 403, door
        else:
            assert answer.status_code == 403, door
            assert f"yours is {role}" in answer.text, door


def guards_of(answer: httpx.Response) -> None:
    """Check the headers that keep an answer ours."""
    assert "content-security-policy" in answer.headers, (answer.url, answer.status_code, answer.headers)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["form-action"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert re.fullmatch(r"'self' 'nonce-[\w-]{20,}'", policy["script-src"])
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "no-store" in answer.headers["cache-control"]


async def test_every_answer_is_guarded_whatever_it_says(
    product: System, table: Sequence[Door], client: httpx.AsyncClient
) -> None:
    addresses = {door.path for door in table if door.method == "GET"} | {"/admin/nowhere", "/usage/nowhere"}
    for path in addresses:
        guards_of(await client.get(path))
    await sign_in(client, product.admin_key)
    for path in addresses:
        guards_of(await client.get(path))
    guards_of(await client.post("/admin/sign-out"))
    guards_of(await client.delete("/admin/sign-in"))


async def test_nonces_are_never_used_twice(house: SiteHouse) -> None:
    async with house.operator() as browser:
        policies = {(await browser.get("/admin/sample")).headers["content-security-policy"] for _ in range(3)}
        assert len(policies) == 3


async def test_a_fault_tells_its_page_id_and_nothing_else(house: SiteHouse) -> None:
    async with house.operator() as browser:
        answer = await browser.get("/admin/broken")
        assert answer.status_code == 500
        assert re.search(r"page_[0-9a-f]{16}", answer.text)
        assert "a secret of the system" not in answer.text
        guards_of(answer)


TEMPLATES = sorted((Path(__file__).parents[2] / "gateway" / "admin" / "templates").rglob("*.html"))
FORBIDDEN = {
    r"\shx-on[:\s=]": "scripts in attributes",
    r"['\"]\s*(js|javascript):": "scripts in values",
    r"hx-trigger=[^>]*\[": "filters of triggers are compiled as scripts",
    r"\shx-(vals|headers|confirm)[\w:]*=['\"]\s*js": "scripts in values",
    r"\sstyle=": "styles in attributes",
    r"\son[a-z]+=": "scripts in attributes",
    r"\|\s*safe\b": "what is not escaped",
    r"autoescape": "what is not escaped",
    r"<style\b": "styles in pages",
    r"<iframe|<object|<embed": "what others made",
    r"https?://(?!www\.w3\.org/2000/svg)": "what lies elsewhere",
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_hold_nothing_that_the_guards_are_against(path: Path) -> None:
    text = path.read_text()
    for pattern, why in FORBIDDEN.items():
        found = re.search(pattern, text)
        assert found is None, f"{path.name}: {found[0] if found else ''} ({why})"
    for script in re.findall(r"<script\b[^>]*>(.*?)</script>", text, re.DOTALL):
        assert script.strip() == "" or re.fullmatch(r"\{\{ [\w.]+\|script_json \}\}", script.strip()), script
    for form in re.findall(r"<form\b[^>]*method=\"post\".*?</form>", text, re.DOTALL):
        assert "csrf_" in form, f"{path.name}: a form without its token"


def test_the_check_of_templates_finds_what_it_looks_for() -> None:
    bad = (
        '<a hx-on:click="x">',
        '<a href="javascript:x">',
        '<a hx-trigger="click[x]">',
        "<a style='x'>",
        "{{ x|safe }}",
        '<a onclick="x">',
        '<script src="https://cdn.example/x.js">',
        "<a hx-vals='js:{}'>",
    )
    for text in bad:
        assert any(re.search(pattern, text) for pattern in FORBIDDEN), text
