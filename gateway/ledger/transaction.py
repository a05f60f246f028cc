"""One transaction of the slow engine, with Postgres being away told as an error of ours."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.session import is_unavailable
from gateway.errors import Unavailable


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Run the block in one transaction. Raises Unavailable while Postgres is away: whether it committed is unknown."""
    try:
        async with engine.begin() as connection:
            yield connection
    except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        if not is_unavailable(error):
            raise
        raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from error
