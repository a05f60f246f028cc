"""Transactions of the slow engine, with Postgres being away told as an error of ours."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.session import is_unavailable
from gateway.errors import Unavailable


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Run the block in one transaction. Raises Unavailable while Postgres is away: whether it committed is unknown."""
    with _telling():
        async with engine.begin() as connection:
            yield connection


@asynccontextmanager
async def snapshot(engine: AsyncEngine) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    """Read in one consistent snapshot, with asyncpg itself. Raises Unavailable while Postgres is away."""
    with _telling():
        async with engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            async with driver.transaction(isolation="repeatable_read", readonly=True):
                yield driver


@asynccontextmanager
async def statements(engine: AsyncEngine) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    """Run statements of SQL files in one transaction, by asyncpg itself. Raises Unavailable while Postgres is away."""
    with _telling():
        async with engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            async with driver.transaction():
                yield driver


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        if not is_unavailable(error):
            raise
        raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from error
