"""Tables that are locked for a while: who needs them stands still."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from tests.system import System


@contextmanager
def locked(system: System, table: str) -> Iterator[None]:
    """Let nobody read a table for the length of a block."""
    with asyncio.Runner() as runner:
        db = runner.run(asyncpg.connect(system.database_url))
        runner.run(db.execute(f"begin; lock table {table} in access exclusive mode"))
        try:
            yield
        finally:
            runner.run(db.close())
