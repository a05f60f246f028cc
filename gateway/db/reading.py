"""Reading for pages: a transaction that changes nothing, in which no statement may take longer than a second."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.session import is_unavailable
from gateway.errors import Unavailable

PAGE_TIMEOUT_MS = 1000
_CANCELLED = "57014"
_SETTINGS = text(
    """select set_config('statement_timeout', :timeout, true), set_config('plan_cache_mode', 'force_custom_plan', true),
      set_config('max_parallel_workers_per_gather', '0', true)"""
)
"""A range of a day and one of a year want different plans. A page asks several questions at once, which fill the cores
already: workers made none of them quicker, and cost what it takes to start them."""


class TookTooLong(Unavailable):
    """A statement of a page ran into its time limit."""

    default_code = "took_too_long"


@asynccontextmanager
async def reading(engine: AsyncEngine, *, timeout_ms: int = PAGE_TIMEOUT_MS) -> AsyncIterator[AsyncConnection]:
    """Read in one consistent snapshot. Raises TookTooLong, or Unavailable while Postgres is away."""
    try:
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            await connection.execute(_SETTINGS, {"timeout": str(int(timeout_ms))})
            yield connection
    except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        if _was_cancelled(error):
            shown = f"{timeout_ms // 1000} s" if timeout_ms % 1000 == 0 else f"{timeout_ms} ms"
            raise TookTooLong(f"Took longer than {shown}. Try a shorter range.") from error
        if not is_unavailable(error):
            raise
        raise Unavailable("The database is away for the moment; try again.", retry_after_s=1.0) from error


def _was_cancelled(error: BaseException) -> bool:
    inner = error.orig if isinstance(error, DBAPIError) else error
    return getattr(inner, "sqlstate", None) == _CANCELLED
