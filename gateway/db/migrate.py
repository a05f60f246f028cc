"""Bringing a database to this release's version.

All of it is one transaction under an advisory lock: gateways that start together take turns, and a
migration that fails leaves nothing behind and stops the start.
"""

from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from gateway.db.session import slow_engine

LOCK = 0x6661726567617465  # "faregate"
TAKE_TURNS_MS = 60_000
LOCK_TIMEOUT_MS = 5_000


class MigrationError(Exception):
    """The database could not be brought to this release's version; the message is one line that says why."""


class DatabaseIsNewer(MigrationError):
    """The database was migrated by a newer release than this one."""


def migrations_folder() -> Path:
    """Find the migrations: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise MigrationError(f"no migrations beside {package}: the installation is not whole")


def alembic_config(connection: Connection) -> Config:
    """Give alembic's configuration for the connection."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection) -> None:
    wait = text("select set_config('lock_timeout', :ms, true)")
    connection.execute(wait, {"ms": str(TAKE_TURNS_MS)})
    connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    connection.execute(wait, {"ms": str(LOCK_TIMEOUT_MS)})
    config = alembic_config(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise DatabaseIsNewer(f"database is of a newer version ({current}) than this release; install that release")
    command.upgrade(config, "head")


async def upgrade(database_url: str) -> None:
    """Migrate to the newest version this release knows. Raises MigrationError; then the database is as it was."""
    engine = slow_engine(database_url)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_upgrade)
    except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, CommandError, OSError) as error:
        raise MigrationError(f"the database was not migrated: {str(error).splitlines()[0]}") from error
    finally:
        await engine.dispose()
