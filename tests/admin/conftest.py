"""The site over HTTP: its real routes with a real Postgres behind them, and a few pages of the tests' own."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.oidc.members import OidcConfig
from gateway.admin.site.site import SiteParts, site_router
from gateway.admin.site.throttle import Shared
from gateway.db.session import HotSession, slow_engine
from gateway.ledger.accounts import Accounts, NewAccount
from gateway.ledger.keyring import Keyring
from gateway.ledger.keys import Keys, NewKey
from gateway.ledger.sessions import Sessions
from tests.admin.sample import SAMPLE_PAGES
from tests.ledger.patience import patience  # noqa: F401 - an autouse fixture

ORIGIN = "http://test"
OPERATOR_KEYS = {role: f"the-{role}-key-of-this-test" for role in ("owner", "billing", "viewer")}


class SiteHouse:
    """A site that runs inside the test."""

    def __init__(self, app: Litestar, engine: AsyncEngine, keyring: Keyring, keys: Keys, accounts: Accounts) -> None:
        self.app = app
        self.engine = engine
        self.keyring = keyring
        self.keys = keys
        self.accounts = accounts

    def client(self, origin: str = ORIGIN) -> httpx.AsyncClient:
        """A browser with its own cookies, that follows nothing by itself."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=origin)

    @asynccontextmanager
    async def operator(self, role: str = "owner") -> AsyncIterator[httpx.AsyncClient]:
        """A browser in which an operator of a role is signed in."""
        async with self.client() as client:
            await sign_in(client, OPERATOR_KEYS[role])
            yield client

    async def key(self, name: str = "mine") -> tuple[int, str]:
        """Make an account with an API key, known to the keyring; answers its id and its secret."""
        account = await self.accounts.create(NewAccount(name=f"{name}-{uuid4()}", balance_nanos=10**9))
        issued = await self.keys.create(NewKey(account_id=account.id, name=name))
        await self.keyring.refresh()
        return issued.id, issued.key


async def sign_in(client: httpx.AsyncClient, key: str, home: str = "/admin", **fields: str) -> httpx.Response:
    """Send the sign-in form, as a browser that has loaded it."""
    page = await client.get(f"{home}/sign-in")
    assert page.status_code == 200, page.text
    return await client.post(f"{home}/sign-in", data={"csrf_token": token_of(page.text), "key": key, **fields})


def token_of(text: str) -> str:
    """Read the token of a page's form."""
    found = re.search(r'name="csrf_token" value="([^"]+)"', text)
    assert found is not None, text
    return found[1]


@asynccontextmanager
async def site_house(
    database_url: str,
    pages: Sequence[HTTPRouteHandler],
    *,
    base_url: str = ORIGIN,
    oidc: OidcConfig | None = None,
    given: Mapping[str, Any] | None = None,
    tries: Shared | None = None,
) -> AsyncIterator[SiteHouse]:
    """Run a site with some pages for the length of a block; `given` has what their handlers take by name."""
    engine, session = slow_engine(database_url), HotSession(database_url, name="keyring of a test")
    keyring = Keyring(session, every_s=0.05, sessions=Sessions(OPERATOR_KEYS["owner"]))
    await keyring.refresh()
    parts = SiteParts(
        engine=engine,
        keyring=keyring,
        operator_keys=OPERATOR_KEYS,
        secret=OPERATOR_KEYS["owner"],
        base_url=base_url,
        oidc=oidc,
        tries=tries,
        template_folders=[Path(__file__).parent],
    )
    stopping = asyncio.Event()
    following = asyncio.create_task(keyring.run(stopping))
    try:
        app = Litestar([site_router(parts, pages, given or {})], openapi_config=None, logging_config=None)
        yield SiteHouse(app, engine, keyring, Keys(engine), Accounts(engine))
    finally:
        stopping.set()
        await following
        await session.close()
        await engine.dispose()


@pytest.fixture
async def house(module_database_url: str) -> AsyncIterator[SiteHouse]:
    """A site with the sample pages."""
    async with site_house(module_database_url, SAMPLE_PAGES) as running:
        yield running
