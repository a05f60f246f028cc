"""`faregate books`: whether every cent adds up."""

import asyncio

import click

from gateway.commands.client import AdminApi, NotReached, System, system_command
from gateway.commands.output import print_json
from gateway.db.session import slow_engine
from gateway.errors import FaregateError
from gateway.ledger.books.figures import BooksReport
from gateway.ledger.books.verify import Books
from gateway.queues.redis_settler import RedisSettler

BLOBS = "blobs"
"""The blob folder, inside the data folder."""


@click.group()
def books() -> None:
    """Verify that the books add up."""


@books.command()
@click.option("--allowed-repeats", type=click.IntRange(min=0), help="How many repeated executions faults explain (I9).")
@system_command
def verify(system: System, allowed_repeats: int | None) -> None:
    """Check I1 to I13 in one snapshot of Postgres, and print their figures. Exit code 1 when one is broken.

    On the machine of the system it reads Postgres itself, so it works while no gateway runs.
    """
    if system.connection.database_url:
        report = asyncio.run(_verify_here(system, allowed_repeats))
    else:
        query = f"?allowed_repeats={allowed_repeats}" if allowed_repeats is not None else ""
        with AdminApi(system.connection) as api:
            report = api.post(f"/books/verify{query}", BooksReport)
    if system.as_json:
        print_json(report)
    else:
        _print(report)
    if not report.holds:
        raise SystemExit(1)


async def _verify_here(system: System, allowed_repeats: int | None) -> BooksReport:
    engine = slow_engine(system.connection.database_url, pool_size=1)
    settler = RedisSettler(system.connection.redis_url, "books") if system.connection.redis_url else None
    blobs = system.data / BLOBS if system.data else None
    try:
        told = Books(
            engine,
            blob_dir=blobs if blobs and blobs.is_dir() else None,
            missing=settler.missing if settler else None,
        )
        return await told.verify(allowed_repeats=allowed_repeats)
    except FaregateError as error:
        raise NotReached(error.message) from None
    finally:
        if settler:
            await settler.close()
        await engine.dispose()


def _print(report: BooksReport) -> None:
    """Print every check with its figures, and under a broken one what breaks it."""
    for check in report.checks:
        click.echo(f"{check.invariant:<4} {check.verdict:<12} {check.statement}")
        figures = (
            f"{check.left_name} {check.left:,} | {check.right_name} {check.right:,} | difference {check.difference:,}"
        )
        click.echo(f"{'':<17} {figures}{f' ({check.note})' if check.note else ''}")
        if check.broken:
            click.echo(f"{'':<17} broken: {check.broken:,}, first {', '.join(check.offenders)}")
    broken = list(dict.fromkeys(check.invariant for check in report.checks if check.verdict == "broken"))
    verdict = f"The books are broken: {', '.join(broken)}." if broken else "The books hold."
    click.echo(
        f"{verdict} {len(report.checks)} checks over {report.usage_rows:,} finished and {report.open_requests:,} open "
        f"requests, as of {report.checked_at:%Y-%m-%d %H:%M:%SZ}."
    )


commands: list[click.Command] = [books]
