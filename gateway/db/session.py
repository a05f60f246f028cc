"""Sessions: hot ones over asyncpg for admission and settlement, an SQLAlchemy engine for everything else.

Settings of hot sessions, as measured on the whole path: generic plans, no JIT and no sequential scans
cost Postgres 42% less than its defaults. Commits stay durable.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import asyncpg
from sqlalchemy import AdaptedConnection, event, exc, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from gateway.errors import Unavailable

CONNECT_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 5.0
SLOW_STATEMENT_TIMEOUT_S = 60.0

HOT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "plan_cache_mode": "force_generic_plan",
        "jit": "off",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",  # index scans meet rows in the order of their ids, which the lock order needs
        "synchronous_commit": "on",
        "timezone": "UTC",
        "lock_timeout": "4s",  # below the statement's own timeout, so that the server ends the wait and says why
        "idle_in_transaction_session_timeout": "10s",
    }
)

_AWAY = (
    OSError,  # refused, reset, timed out, no socket
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutdown, crash, starting up, cancelled, terminated
    asyncpg.InsufficientResourcesError,  # disk full, too many connections
    asyncpg.PostgresSystemError,
    asyncpg.TransactionRollbackError,  # deadlock, serialization: rolled back, and worth another try
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, for a moment
    asyncpg.InternalClientError,  # the protocol broke off in the middle
    exc.TimeoutError,  # no connection came free
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or (at.orig if isinstance(at, exc.DBAPIError) else None)


def is_unavailable(error: BaseException) -> bool:
    """Say whether an error of asyncpg or SQLAlchemy means that Postgres is away or overtaxed for the moment."""
    for cause in _causes(error):
        if isinstance(cause, _AWAY):
            return True
        if isinstance(cause, asyncpg.InterfaceError) and not isinstance(cause, ValueError):
            return True  # "connection is closed" and its kin; the ValueErrors are wrong arguments
    return False


async def connect_hot(database_url: str, *, name: str) -> "asyncpg.Connection[asyncpg.Record]":
    """Open a hot session; `name` is what pg_stat_activity shows."""
    return await asyncpg.connect(
        database_url, timeout=CONNECT_TIMEOUT_S, server_settings={**HOT_SETTINGS, "application_name": name}
    )


class HotSession:
    """One hot connection for one statement after another, opened when first needed and again after it broke.

    Only one statement may run at a time; who shares a session takes turns.
    """

    def __init__(self, database_url: str, *, name: str, timeout_s: float = STATEMENT_TIMEOUT_S) -> None:
        self._url = database_url
        self._name = name
        self._timeout_s = timeout_s
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run one statement in a transaction of its own.

        Raises Unavailable where Postgres is away: then whether it has committed is unknown. Raises
        asyncpg's errors where Postgres refused the statement: then nothing has happened.
        """
        try:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = self._connection = await connect_hot(self._url, name=self._name)
            rows: list[asyncpg.Record] = await connection.fetch(statement, *arguments, timeout=self._timeout_s)
            return rows
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            if not is_unavailable(error):
                raise
            self._drop()
            raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Close the connection; the next statement would open another."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=CONNECT_TIMEOUT_S)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()


def slow_engine(database_url: str, *, pool_size: int = 4) -> AsyncEngine:
    """Make the engine for everything that is not hot: accounts, catalog, sweeper, reports, migrations."""
    engine = create_async_engine(
        make_url(database_url).set(drivername="postgresql+asyncpg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=CONNECT_TIMEOUT_S,
        connect_args={
            "timeout": CONNECT_TIMEOUT_S,
            "command_timeout": SLOW_STATEMENT_TIMEOUT_S,
            "server_settings": {"timezone": "UTC", "jit": "off", "application_name": "faregate"},
        },
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: AdaptedConnection, _record: object, _proxy: object) -> None:
    """Have the pool open a connection anew that the server has closed: asyncpg has heard of it.

    SQLAlchemy's own ping asks the server, in three round trips before each transaction.
    """
    if connection.driver_connection.is_closed():
        raise exc.DisconnectionError
