"""Migrations: a database becomes what this release expects, or stays as it was and says why."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from gateway.contract.units import UNIT_NAMES
from gateway.db.migrate import DatabaseIsNewer, MigrationError, alembic_config, migrations_folder, upgrade
from gateway.db.session import slow_engine
from gateway.db.tables import METADATA
from gateway.reports.latency import counts_of
from tests.conftest import named


@pytest.fixture
async def empty_database_url(postgres_url: str) -> AsyncIterator[str]:
    name = f"empty_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(f"create database {name}")
    yield named(postgres_url, name)
    await connection.execute(f"drop database {name} with (force)")
    await connection.close()


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


async def test_tables_and_migrations_say_the_same(database_url: str) -> None:
    def differences(connection: Connection) -> list[object]:
        options = {"compare_type": True, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), METADATA))

    engine = slow_engine(database_url)
    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engine.dispose()


async def test_gateways_that_start_together_migrate_once(empty_database_url: str, empty: asyncpg.Connection) -> None:
    await asyncio.gather(*(upgrade(empty_database_url) for _ in range(4)))
    await upgrade(empty_database_url)
    assert await empty.fetchval("select count(*) from revision") == 1


async def test_a_database_of_a_newer_release_is_refused_and_left_alone(
    empty_database_url: str, empty: asyncpg.Connection
) -> None:
    await upgrade(empty_database_url)
    await empty.execute("update alembic_version set version_num = '29991231235959'")
    with pytest.raises(DatabaseIsNewer, match="database is of a newer version") as refused:
        await upgrade(empty_database_url)
    assert "\n" not in str(refused.value)
    assert await empty.fetchval("select version_num from alembic_version") == "29991231235959"


async def test_a_migration_that_fails_leaves_nothing_behind(empty_database_url: str, empty: asyncpg.Connection) -> None:
    await empty.execute("create table usage_rollup (mine int)")
    with pytest.raises(MigrationError, match="usage_rollup") as failed:
        await upgrade(empty_database_url)
    assert "\n" not in str(failed.value)
    tables = await empty.fetch(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    )
    assert [row["relname"] for row in tables] == ["usage_rollup"]


async def test_a_server_that_is_away_is_told_in_one_line(unused_tcp_port: int) -> None:
    with pytest.raises(MigrationError, match="not migrated") as failed:
        await upgrade(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing")
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("table", ["ledger_entry", "usage", "price_version"])
@pytest.mark.parametrize("change", ["update {} set {}", "delete from {}", "truncate {}"])
async def test_what_is_append_only_refuses_to_change(database_url: str, table: str, change: str) -> None:
    column = {"ledger_entry": "kind = 2", "usage": "attempt = 2", "price_version": "source = ''"}[table]
    connection = await asyncpg.connect(database_url)
    with pytest.raises(asyncpg.RestrictViolationError, match=f"{table} is append-only"):
        await connection.execute(change.format(table, column))
    await connection.close()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay the package out as a wheel does: the migrations inside it."""
    package = tmp_path / "gateway"
    (package / "db").mkdir(parents=True)
    (package / "migrations").mkdir()
    (package / "migrations" / "env.py").touch()
    monkeypatch.setattr("gateway.db.migrate.__file__", str(package / "db" / "migrate.py"))
    return package


def test_migrations_are_found_inside_an_installed_package(installed: Path) -> None:
    assert migrations_folder() == installed / "migrations"


def test_an_installation_without_migrations_says_so(installed: Path) -> None:
    (installed / "migrations" / "env.py").unlink()
    with pytest.raises(MigrationError, match="not whole"):
        migrations_folder()


async def test_latencies_counted_by_an_older_release_are_kept(
    empty_database_url: str, empty: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    def to_the_release_before(connection: Connection) -> None:
        command.upgrade(alembic_config(connection), "20261121230000")

    engine = slow_engine(empty_database_url)
    async with engine.begin() as connection:
        await connection.run_sync(to_the_release_before)
    await engine.dispose()
    counts = [0, 3, *[0] * 29, 7]
    await empty.execute("set session_replication_role = replica")  # a sum without what it is a sum of
    figures = ("requests", "charge_nanos", "latency_us", "cost_nanos", "uncosted", "gpu_us", *UNIT_NAMES)
    await empty.execute(
        "insert into usage_rollup (hour, account_id, api_key_id, model_id, task, outcome, route, latency_counts,"
        f" {', '.join(figures)})"
        f" values ('2026-11-20 10:00Z', 1, 1, 1, 0, 0, 'fake', $1, {', '.join('0' * len(figures))})",
        counts,
    )
    await upgrade(empty_database_url)
    kept = await empty.fetchval("select latencies from usage_rollup")
    assert list(counts_of(int(kept))) == counts
