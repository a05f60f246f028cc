"""Everything on this machine, wired: what `faregate up` starts, in which order, and how it ends.

Postgres and Valkey, then migrations and the catalog, then the gateway, the settler and the workers. What dies is
started again; SIGINT or SIGTERM drains in the opposite order; whatever ends this process ends its children too.
"""

import hashlib
import http.client
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.load import load_file
from gateway.catalog.model import Catalog, Model, Pool
from gateway.catalog.store import read_catalog
from gateway.commands.demo import demo_key
from gateway.commands.welcome import now_line, tell_states, welcome
from gateway.db.migrate import upgrade
from gateway.db.session import slow_engine
from gateway.ledger.prices.file_door import apply_at_start, file_actor
from gateway.queues.port import QueueUnavailable
from gateway.queues.redis_queue import RedisQueues
from gateway.stack.connection import Connection, remove_connection, write_connection
from gateway.stack.errors import StackError
from gateway.stack.folder import DataFolder, hold_folder
from gateway.stack.interrupt import Interrupt, Interrupted
from gateway.stack.ports import free_port, listen
from gateway.stack.roles import Site
from gateway.stack.servers import start_postgres, start_valkey
from gateway.stack.supervisor import Supervisor

END_ORDER = ("gateway", "worker", "settler", "valkey", "postgres")
GATEWAY_READY_S = 60.0
PORT_FREE_S = 3.0
"""A gateway that was killed a moment ago may hold its port for a moment."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says."""

    data: Path
    host: str
    port: int
    engines: tuple[str, ...]
    database_url: str
    redis_url: str
    catalog: Path
    blob_url: str = ""


class Stack:
    """One `faregate up`, from its data folder to its last child."""

    def __init__(self, options: Options, folder: DataFolder, catalog: Catalog) -> None:
        self._options = options
        self._folder = folder
        self._catalog = catalog
        self._supervisor = Supervisor(say=now_line, changed=self._publish)
        self._connection: Connection | None = None
        self._listener: socket.socket | None = None
        self._began = time.monotonic()

    async def start(self) -> Connection:
        """Start everything; answers once the gateway does, with workers still loading. Raises StackError and others.

        connection.json is there before the gateway answers: whoever calls then waits at the socket, which listens from
        the beginning. Workers come last, since loading an engine takes all cores.
        """
        remove_connection(self._folder.path)
        supervisor, kept = self._supervisor, self._folder.kept
        wanted = self._options.port or free_port(kept.gateway_port, self._options.host)
        self._listener = await listen(self._options.host, wanted, PORT_FREE_S)
        site = await self._start_servers(self._listener)
        catalog = await self._prepare(site)
        gateway = supervisor.spawn(site.gateway())
        supervisor.start(site.settler())
        self._connection = connection = Connection(
            base_url=site.base_url,
            admin_key=kept.admin_key,
            api_key=self._folder.kept.api_key,
            database_url=site.database_url,
            redis_url=site.redis_url,
            blob_url=site.blobs,
        )
        self._publish()
        await supervisor.await_ready(gateway, lambda: _answers(site), GATEWAY_READY_S)
        for pool in _pools_to_run(catalog, site.engines):
            for number in range(1, pool.workers + 1):
                supervisor.start(site.worker(pool.name, number))
        self._say_when(f"the gateway answers at {site.base_url}")
        click.echo(welcome(connection, _models_to_show(catalog, site.engines)))
        return connection

    async def _start_servers(self, listener: socket.socket) -> Site:
        """Start Postgres and Valkey, or take those that were named."""
        options, folder = self._options, self._folder
        port = int(listener.getsockname()[1])
        folder.keep(gateway_port=port)
        site = Site(
            folder=folder,
            database_url=options.database_url or await start_postgres(folder, self._supervisor),
            redis_url=options.redis_url or await start_valkey(folder, self._supervisor),
            host=options.host,
            port=port,
            listener=listener.fileno(),
            engines=options.engines,
            blob_url=options.blob_url,
        )
        await _check_redis(site.redis_url)
        self._say_when("Postgres and Valkey are up")
        return site

    async def _prepare(self, site: Site) -> Catalog:
        """Migrate, apply the catalog and see to the demo account; answers the catalog as the database has it."""
        engine = slow_engine(site.database_url)
        try:
            await upgrade(site.database_url)
            catalog = await self._apply_catalog(engine)
            self._folder.keep(api_key=await demo_key(engine, self._folder.kept.api_key))
        finally:
            await engine.dispose()
        return catalog

    async def stop(self) -> None:
        """Drain and end all children, those first that others wait for."""
        if self._listener is not None:
            self._listener.close()
        for role in END_ORDER:
            await self._supervisor.stop([role])
        remove_connection(self._folder.path)

    def kill(self) -> None:
        """End all children at once."""
        self._supervisor.kill()
        remove_connection(self._folder.path)

    def _publish(self) -> None:
        """Write connection.json anew, once there is a system to connect to."""
        if self._connection is not None:
            self._connection = msgspec.structs.replace(self._connection, processes=self._supervisor.processes())
            write_connection(self._folder.path, self._connection)

    async def _apply_catalog(self, engine: AsyncEngine) -> Catalog:
        """Apply the catalog file where it is another than last time, so that edits made elsewhere since then stay."""
        database = self._options.database_url or "embedded"
        digest = hashlib.sha256(database.encode() + b"\0" + self._options.catalog.read_bytes()).hexdigest()
        if digest != self._folder.kept.applied_catalog:
            await apply_at_start(engine, self._catalog, file_actor(), source=f"faregate up: {self._options.catalog}")
            self._folder.keep(applied_catalog=digest)
        async with engine.connect() as connection:
            return await read_catalog(connection)

    def _say_when(self, what: str) -> None:
        now_line(f"{what} ({time.monotonic() - self._began:.1f} s)")


async def run(options: Options) -> None:
    """Run a stack until a signal ends it. Raises StackError, CatalogError, MigrationError or OSError."""
    catalog = load_file(options.catalog)
    interrupt = Interrupt()
    with hold_folder(options.data) as folder:
        stack = Stack(options, folder, catalog)
        try:
            connection = await interrupt.before(stack.start())
            with suppress(Interrupted):
                await interrupt.before(tell_states(connection, now_line))
                await interrupt.first.wait()
        except Interrupted:
            pass
        finally:
            if interrupt.first.is_set():
                now_line("stopping: open calls are served to their end; a second signal ends everything at once")
            try:
                await interrupt.before_second(stack.stop())
            except Interrupted:
                stack.kill()


def _answers(site: Site) -> bool:
    """Whether the gateway can serve calls."""
    address = site.base_url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=0.5)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


async def _check_redis(redis_url: str) -> None:
    """Raise StackError unless Redis answers: a gateway would wait for it in silence."""
    try:
        queues = RedisQueues(redis_url)
    except ValueError as error:
        raise StackError(f"--redis-url: {error}") from None
    try:
        await queues.pool("faregate").depth()
    except QueueUnavailable as error:
        raise StackError(f"Redis does not answer as --redis-url says: {error}") from None
    finally:
        await queues.close()


def _pools_to_run(catalog: Catalog, engines: Sequence[str]) -> list[Pool]:
    """Choose the pools whose engine was asked for and that serve a model."""
    used = {route.pool for model in catalog.models.values() for route in model.routes}
    return [pool for pool in catalog.pools.values() if pool.engine in engines and pool.name in used]


def _models_to_show(catalog: Catalog, engines: Sequence[str]) -> list[Model]:
    """Choose the models for sale that run here and need nobody's key, in the order of the catalog."""
    pools = {pool.name for pool in _pools_to_run(catalog, engines)}
    sold = [model for model in catalog.models.values() if catalog.prices.get(model.name)]
    return [model for model in sold if any(route.pool in pools and not route.upstream for route in model.routes)]
