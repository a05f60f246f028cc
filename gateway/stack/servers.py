"""Postgres and Valkey of a stack: its own children, or servers that were named."""

import asyncpg

from gateway.stack import postgres, valkey
from gateway.stack.folder import DataFolder
from gateway.stack.leftovers import clear_leftovers
from gateway.stack.ports import free_port
from gateway.stack.supervisor import Supervisor

READY_S = 120.0
"""How long a server may take; one that was killed first repairs its data."""


async def start_postgres(folder: DataFolder, supervisor: Supervisor) -> str:
    """Start Postgres on the data folder; answers the URL of Faregate's database. Raises StackError."""
    data_dir = folder.path.resolve() / "postgres"
    if data_dir.exists():
        clear_leftovers(data_dir, "postgres")
    server = postgres.prepare(
        data_dir,
        log=folder.log("postgres"),
        port=free_port(folder.kept.postgres_port),
        password=folder.kept.postgres_password,
    )
    folder.keep(postgres_port=server.port)
    if server.programs.copied:
        supervisor.say(f"Postgres runs as nobody from a copy of its programs, {server.programs.folder}")
    await supervisor.start_ready(server.child(), server.ready, READY_S)
    await _create_database(server.url("postgres"))
    return server.url()


async def start_valkey(folder: DataFolder, supervisor: Supervisor) -> str:
    """Start Valkey on the data folder; answers its URL. Raises StackError."""
    data_dir = folder.path.resolve() / "valkey"
    if data_dir.exists():
        clear_leftovers(data_dir, "valkey-server")
    server = valkey.prepare(
        data_dir,
        log=folder.log("valkey"),
        port=free_port(folder.kept.valkey_port),
        password=folder.kept.valkey_password,
    )
    folder.keep(valkey_port=server.port)
    await supervisor.start_ready(server.child(), server.ready, READY_S)
    return server.url()


async def _create_database(maintenance_url: str) -> None:
    connection = await asyncpg.connect(maintenance_url)
    try:
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", postgres.DATABASE):
            await connection.execute(f"CREATE DATABASE {postgres.DATABASE}")
    finally:
        await connection.close()
