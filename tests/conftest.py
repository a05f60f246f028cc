"""Real services for tests: one Postgres for the whole run, one Valkey for each test process, both from wheels.

postgres_url   the server's maintenance database
database_url   a migrated database of this test's own, cloned from one template
redis_url      this process's Valkey, emptied before each test
"""

import asyncio
import importlib.util
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import msgspec
import pytest
import redis
from hypothesis import settings

from gateway.catalog.export import export
from gateway.catalog.load import load_file
from gateway.db.migrate import upgrade
from gateway.stack import postgres, valkey
from gateway.stack.children import Child, await_ready, spawn, stop
from gateway.stack.errors import NotInstalled
from gateway.stack.ports import free_port
from tests.buckets import s3_server
from tests.media.serving import CATALOG, SERVED, SETTINGS
from tests.rooms import RoomScheduling, enter, leave, room_of
from tests.system import System, running_system

TEMPLATE = "template_faregate"
TEMPLATE_LOCK = 7_305_401
URL_FROM_CONTROLLER = "postgres_url"
ROOMS_FROM_CONTROLLER = "rooms"

_services = ExitStack()

settings.register_profile("patient", parent=settings(), deadline=None)  # an example is no slower for a slow machine
settings.load_profile("patient")


@contextmanager
def running(child: Child, ready: Callable[[], bool]) -> Iterator[None]:
    """Run a child of the stack for the length of a block."""
    process = spawn(child)
    try:
        await_ready(process, child, ready, 90.0)
        yield
    finally:
        stop(process, child)


@contextmanager
def postgres_server(durable: bool = False) -> Iterator[str]:
    """Run an empty Postgres for the length of a block; answers the URL of its maintenance database."""
    with tempfile.TemporaryDirectory(prefix="faregate-test-") as folder:
        place = Path(folder)
        place.chmod(0o711)
        server = postgres.prepare(
            place / "postgres",
            log=place / "postgres.log",
            port=free_port(),
            password=secrets.token_hex(8),
            durable=durable,
        )
        with running(server.child(), server.ready):
            yield server.url("postgres")


@contextmanager
def valkey_server(durable: bool = False) -> Iterator[str]:
    """Run an empty Valkey for the length of a block; answers its URL."""
    with tempfile.TemporaryDirectory(prefix="faregate-test-") as folder:
        place = Path(folder)
        server = valkey.prepare(
            place / "valkey",
            log=place / "valkey.log",
            port=free_port(),
            password=secrets.token_hex(8),
            durable=durable,
        )
        with running(server.child(), server.ready):
            yield server.url()


def pytest_unconfigure() -> None:
    """Stop what `pytest_configure_node` started."""
    _services.close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Start one Postgres for all processes of a run by pytest-xdist, and tell each where it is."""
    if not hasattr(node.config, "faregate_postgres_url"):
        try:
            node.config.faregate_postgres_url = _services.enter_context(postgres_server())
        except NotInstalled as error:
            node.config.faregate_postgres_url = str(error)
    node.workerinput[URL_FROM_CONTROLLER] = node.config.faregate_postgres_url
    node.workerinput[ROOMS_FROM_CONTROLLER] = node.config.getoption("dist") == "loadfile"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> RoomScheduling | None:
    """Give each room to one process, where a run by pytest-xdist keeps files together."""
    return RoomScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop what a room shared, after the last of its tests."""
    in_rooms = getattr(item.config, "workerinput", {}).get(ROOMS_FROM_CONTROLLER)
    if in_rooms and nextitem is not None and room_of(_file(item)) != room_of(_file(nextitem)):
        leave()


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def absent(reason: object) -> None:
    """Skip on a laptop without the wheels; fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"a real service is missing: {reason}")
    pytest.skip(f"a real service is missing: {reason}")


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Answer the maintenance database of the run's Postgres 18."""
    told: str | None = getattr(request.config, "workerinput", {}).get(URL_FROM_CONTROLLER)
    if told is None:
        try:
            yield _services.enter_context(postgres_server())
        except NotInstalled as error:
            absent(error)
    elif told.startswith("postgresql://"):
        yield told
    else:
        absent(told)


@pytest.fixture(scope="session")
def template_database(postgres_url: str) -> str:
    """Answer the name of the migrated database that `database_url` clones; made once in a run."""
    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, _make_template(postgres_url)).result()
    return TEMPLATE


async def _make_template(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", TEMPLATE_LOCK)
        if await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", TEMPLATE):
            return
        draft = f"{TEMPLATE}_draft"
        await connection.execute(f"DROP DATABASE IF EXISTS {draft} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {draft}")
        await upgrade(named(postgres_url, draft))
        await connection.execute(f"ALTER DATABASE {draft} RENAME TO {TEMPLATE}")
    finally:
        await connection.close()


def named(url: str, database: str) -> str:
    """Answer the same server's URL with another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@contextmanager
def cloned_database(postgres_url: str, template: str) -> Iterator[str]:
    """Make a database from a template for the length of a block; answers its URL."""
    name = f"test_{secrets.token_hex(6)}"
    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, _execute(postgres_url, f"CREATE DATABASE {name} TEMPLATE {template}")).result()
        yield named(postgres_url, name)
        apart.submit(asyncio.run, _execute(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")).result()


@pytest.fixture
def database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """Answer a migrated, empty database of this test's own."""
    with cloned_database(postgres_url, template_database) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """Answer a migrated, empty database that the tests of one module share."""
    with cloned_database(postgres_url, template_database) as url:
        yield url


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """Answer this test process's Valkey, as the tests before left it."""
    try:
        yield _services.enter_context(valkey_server())
    except NotInstalled as error:
        absent(error)


@pytest.fixture
def redis_url(valkey_url: str) -> str:
    """Answer this test process's Valkey, empty."""
    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
    return valkey_url


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Answer where this test process's S3 server answers."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("obstore") is None:
        absent("moto's server, or obstore")
    with s3_server(tmp_path_factory.mktemp("s3") / "moto.log") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a whole running system with the engines `fake` and `speech`, shared by the tests of this process."""
    folder = tmp_path_factory.mktemp("system")
    folder.chmod(0o711)
    ours = load_file(Path(__file__).parents[1] / "catalog.yaml")
    voices = msgspec.structs.replace(ours.pools["voices"], workers=0)  # torch, which these tests do without
    catalog = folder / "catalog.yaml"
    catalog.write_text(export(msgspec.structs.replace(ours, pools=ours.pools | {"voices": voices})))
    made = enter(running_system(folder / "data", "--catalog", str(catalog), engines="fake,speech"))
    made.wait_ready("fake-chat", "fake-stream", "fake-slow", "espeak-ng")
    yield made
    leave()


@pytest.fixture(scope="session")
def media_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a whole running system with a fake model for every media task (tests/media.yaml)."""
    if find_spec("PIL") is None or find_spec("av") is None:
        absent("Pillow and PyAV")
    folder = tmp_path_factory.mktemp("media-system")
    folder.chmod(0o711)
    catalog = Path(__file__).parent / "media.yaml"
    made = enter(running_system(folder / "data", "--catalog", str(catalog), engines="fake"))
    made.wait_ready("fake-image", "fake-image-slow", "fake-rerank")
    yield made
    leave()


@pytest.fixture(scope="session")
def taking_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a whole running system whose models take media, under low limits, shared by the tests of this process."""
    folder = tmp_path_factory.mktemp("taking")
    folder.chmod(0o711)
    made = enter(running_system(folder / "data", "--catalog", str(CATALOG), environ=SETTINGS))
    made.wait_ready(*SERVED)
    yield made
    leave()
