"""Which errors mean that Postgres is away for the moment, and which are our own fault."""

import asyncpg
import pytest
from sqlalchemy import exc

from gateway.db.session import is_unavailable

AWAY: list[BaseException] = [
    ConnectionRefusedError(),
    ConnectionResetError(),
    FileNotFoundError("no socket"),
    TimeoutError(),
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.CannotConnectNowError("the database system is starting up"),
    asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    asyncpg.CrashShutdownError("terminating connection because of crash of another server process"),
    asyncpg.QueryCanceledError("canceling statement due to statement timeout"),
    asyncpg.TooManyConnectionsError("sorry, too many clients already"),
    asyncpg.DiskFullError("could not extend file"),
    asyncpg.DeadlockDetectedError("deadlock detected"),
    asyncpg.LockNotAvailableError("canceling statement due to lock timeout"),
    asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.InternalClientError("got result for unknown protocol state"),
    exc.TimeoutError("QueuePool limit"),
]

OURS: list[BaseException] = [
    ValueError("no"),
    KeyError("no"),
    asyncpg.CheckViolationError("account_available_check"),
    asyncpg.UniqueViolationError("duplicate key"),
    asyncpg.UndefinedTableError("no such table"),
    asyncpg.InvalidPasswordError("password authentication failed"),
    asyncpg.exceptions.DataError("invalid input for query argument $1"),
]


def name(error: BaseException) -> str:
    return type(error).__name__


@pytest.mark.parametrize("error", AWAY, ids=name)
def test_away(error: BaseException) -> None:
    assert is_unavailable(error)
    wrapped = exc.DBAPIError("select 1", {}, error)
    assert is_unavailable(wrapped)


@pytest.mark.parametrize("error", OURS, ids=name)
def test_our_own_fault(error: BaseException) -> None:
    assert not is_unavailable(error)
    assert not is_unavailable(exc.DBAPIError("select 1", {}, error))
