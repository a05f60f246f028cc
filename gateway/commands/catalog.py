"""`faregate catalog`: check, diff, apply, export and import what can be called by name."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import click
import msgspec
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.diff import Change, diff_text
from gateway.catalog.export import export
from gateway.catalog.load import load_file
from gateway.catalog.model import Catalog
from gateway.catalog.problems import CatalogError, Problem
from gateway.catalog.store import PricedElsewhere, compare, read_catalog
from gateway.commands.catalog_import import import_commands
from gateway.commands.client import CommandError, NotReached, read_connection
from gateway.commands.output import print_json
from gateway.db.session import slow_engine
from gateway.ledger.prices.file_door import apply_file, file_actor

T = TypeVar("T")

FILE = click.argument("file", type=click.Path(path_type=Path), default=Path("catalog.yaml"))
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What `check` found."""

    ok: bool
    models: int = 0
    for_sale: int = 0
    pools: int = 0
    upstreams: dict[str, int] = {}
    """How many models each serves."""
    problems: tuple[Problem, ...] = ()


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What `diff` and `apply` print as JSON."""

    changes: tuple[Change, ...]
    revision: int | None = None


@click.group("catalog")
def catalog_commands() -> None:
    """Check, compare, apply and export the catalog: pools, models, prices."""


@catalog_commands.command()
@FILE
@JSON
def check(file: Path, as_json: bool) -> None:
    """Check a catalog file in full, without a running system. Exit code 1 when it has errors."""
    try:
        catalog = load_file(file)
    except CatalogError as error:
        if as_json:
            print_json(Checked(ok=False, problems=error.problems))
        else:
            click.echo(str(error), err=True)
        raise SystemExit(1) from None
    found = _counted(catalog)
    if as_json:
        print_json(found)
        return
    click.echo(f"{file} is right: {found.models} models, {found.for_sale} of them for sale, {found.pools} pools")
    if found.upstreams:
        click.echo("models by upstream: " + ", ".join(f"{name} {count}" for name, count in found.upstreams.items()))


def _counted(catalog: Catalog) -> Checked:
    served = [name for model in catalog.models.values() for name in {route.upstream for route in model.routes}]
    return Checked(
        ok=True,
        models=len(catalog.models),
        for_sale=sum(bool(price) for price in catalog.prices.values()),
        pools=len(catalog.pools),
        upstreams={name: served.count(name) for name in catalog.upstreams},
    )


def _database(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--data` and `--database-url`, and the URL they name as `database_url`."""

    @click.option(
        "--data",
        type=click.Path(path_type=Path),
        default=Path("data"),
        envvar="FAREGATE_DATA",
        show_default=True,
        help="The folder of a running system: its connection.json names the database.",
    )
    @click.option("--database-url", envvar="FAREGATE_DATABASE_URL", default="", help="The database itself.")
    @functools.wraps(command)
    def wrapped(data: Path, database_url: str, **options: Any) -> None:
        url = database_url or read_connection(data).database_url
        if not url:
            raise NotReached(f"{data}/connection.json names no database: give --database-url")
        command(database_url=url, **options)

    return wrapped


@catalog_commands.command()
@FILE
@_database
@JSON
def diff(file: Path, database_url: str, as_json: bool) -> None:
    """Show what applying a file would change. Exit code 1 when something would, 2 when that cannot be said."""
    catalog = _load(file)
    changes = _run(database_url, lambda engine: compare(engine, catalog))
    _print(Changes(changes=changes), as_json)
    if changes:
        raise SystemExit(1)


@catalog_commands.command("apply")
@FILE
@_database
@click.option(
    "--overwrite", is_flag=True, help="Also prices that came through another door since the file was written."
)
@click.option("--reason", default="", help="Why prices change, for their history.")
@JSON
def apply_command(file: Path, database_url: str, overwrite: bool, reason: str, as_json: bool) -> None:
    """Apply a file: all of it, or nothing. Exit code 2 when it has errors or the database is away.

    Prices that came through another door since the file was written are not overwritten: exit code 1.
    """
    catalog = _load(file)
    try:
        done = _run(
            database_url,
            lambda engine: apply_file(
                engine, catalog, file_actor(), source=str(file), reason=reason, overwrite=overwrite
            ),
        )
    except PricedElsewhere as error:
        raise CommandError(
            f"nothing was changed: {error}\nExport the catalog and edit that, or give --overwrite."
        ) from None
    _print(Changes(changes=done.changes, revision=done.revision), as_json)


@catalog_commands.command("export")
@_database
@JSON
def export_command(database_url: str, as_json: bool) -> None:
    """Write the catalog of a running system as YAML, prices edited elsewhere included."""
    catalog = _run(database_url, _read)
    if as_json:
        print_json(catalog)
    else:
        click.echo(export(catalog), nl=False)


async def _read(engine: AsyncEngine) -> Catalog:
    async with engine.connect() as connection:
        return await read_catalog(connection)


def _load(file: Path) -> Catalog:
    try:
        return load_file(file)
    except CatalogError as error:
        raise NotReached(f"the catalog has errors, and nothing was changed:\n{error}") from None


def _run(database_url: str, work: Callable[[AsyncEngine], Awaitable[T]]) -> T:
    """Run one piece of work against the database. Raises NotReached where it cannot be reached."""

    async def run() -> T:
        engine = slow_engine(database_url, pool_size=1)
        try:
            return await work(engine)
        finally:
            await engine.dispose()

    try:
        return asyncio.run(run())
    except (SQLAlchemyError, asyncpg.PostgresError, OSError, ValueError) as error:
        raise NotReached(f"the database cannot be used: {str(error).splitlines()[0]}") from None


def _print(changes: Changes, as_json: bool) -> None:
    if as_json:
        print_json(changes)
    else:
        click.echo(diff_text(changes.changes))


catalog_commands.add_command(import_commands)

commands: list[click.Command] = [catalog_commands]
