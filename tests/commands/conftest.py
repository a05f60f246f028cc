"""A live admin API on loopback, as commands meet it."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from click.testing import CliRunner, Result
from litestar import Litestar

from gateway.admin.api.router import admin_router
from gateway.cli import faregate
from gateway.db.session import slow_engine
from gateway.http.errors import native_body
from gateway.http.handlers import handlers_of
from gateway.ledger.accounts import Accounts
from gateway.ledger.keys import Keys
from gateway.queues.revisions import MemoryRevisions
from gateway.reports.usage import UsageReport
from gateway.stack.ports import free_port
from gateway.webhooks.deliveries import Deliveries
from tests.ledger.patience import patience  # noqa: F401 - an autouse fixture
from tests.ledger.scene import Scene

ADMIN_KEY = "an-admin-key-of-some-length"
START_S = 60.0

Command = Callable[..., Result]


def admin_app(database_url: str) -> Litestar:
    """Make the admin API alone."""
    engine = slow_engine(database_url)

    @asynccontextmanager
    async def lifespan(_: Litestar):  # type: ignore[no-untyped-def]
        yield
        await engine.dispose()

    router = admin_router(
        {"owner": ADMIN_KEY},
        accounts=Accounts(engine),
        keys=Keys(engine),
        usage_report=UsageReport(engine),
        engine=engine,
        deliveries=Deliveries(engine),
        revisions=MemoryRevisions(),
    )
    handlers = handlers_of(native_body)
    return Litestar([router], exception_handlers=handlers, openapi_config=None, lifespan=[lifespan])


@pytest.fixture(scope="module")
def base_url(module_database_url: str) -> Iterator[str]:
    """Serve the admin API from a thread of its own; answers its address."""
    port = free_port()
    config = uvicorn.Config(admin_app(module_database_url), host="127.0.0.1", port=port, log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    until = time.monotonic() + START_S
    while not server.started:
        assert time.monotonic() < until, "the admin API did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(START_S)


@pytest.fixture(scope="module")
def data(base_url: str, module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answer a data folder whose connection.json names the system."""
    folder = tmp_path_factory.mktemp("data")
    known = {"base_url": base_url, "admin_key": ADMIN_KEY, "api_key": "", "database_url": module_database_url}
    (folder / "connection.json").write_text(json.dumps(known))
    return folder


@pytest.fixture(scope="module")
def calls(module_database_url: str) -> Scene:
    """Let some calls have happened."""

    async def make() -> Scene:
        scene = await Scene.open(module_database_url)
        await scene.call()
        await scene.call()
        await scene.call("painter")
        await scene.close()
        return scene

    return asyncio.run(make())


@pytest.fixture
def command(data: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `faregate` with the data folder of the system."""
    for name in ("FAREGATE_URL", "FAREGATE_ADMIN_KEY", "FAREGATE_DATA"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, env: dict[str, str] | None = None, where: bool = True) -> Result:
        return CliRunner().invoke(faregate, [*words, *(["--data", str(data)] if where else [])], env=env)

    return run
