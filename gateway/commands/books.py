"""`faregate books`: whether every cent adds up."""

import asyncio
import time
from pathlib import Path

import click

from gateway.admin.api.bodies import Correct, CorrectionLine
from gateway.blobs.local import LocalBlobs
from gateway.commands.client import AdminApi, CommandError, NotReached, System, system_command
from gateway.commands.output import USD, dollars, print_json
from gateway.db.session import slow_engine
from gateway.errors import FaregateError
from gateway.ledger.books.figures import BooksReport
from gateway.ledger.books.runs import BooksJob, BooksRun, BooksRuns
from gateway.ledger.books.verify import Books
from gateway.ledger.records import Correction
from gateway.queues.redis_settler import RedisSettler

LOOK_S = 0.5
STARTS_WITHIN_S = 120.0
"""How long nobody may take a verification up: another may be under way, but then it is that one that is waited for."""


@click.group()
def books() -> None:
    """Verify that the books add up, and correct what was booked wrongly."""


@books.command()
@click.option("--allowed-repeats", type=click.IntRange(min=0), help="How many repeated executions faults explain (I9).")
@system_command
def verify(system: System, allowed_repeats: int | None) -> None:
    """Check I1 to I13, and print their figures. Exit code 1 when one is broken.

    On the machine of the system it reads Postgres itself, in one snapshot, so it works while nothing else runs. Of a
    distant system it asks a settler, and waits for what that finds.
    """
    if system.connection.database_url:
        report = asyncio.run(_verify_here(system, allowed_repeats))
    elif allowed_repeats is not None:
        raise CommandError("--allowed-repeats is about the faults of a test: run it on the machine, with --data")
    else:
        with AdminApi(system.connection) as api:
            report = _verify_there(api)
    if system.as_json:
        print_json(report)
    else:
        _print(report)
    if not report.holds:
        raise SystemExit(1)


@books.command()
@click.argument("giver", metavar="FROM")
@click.argument("taker", metavar="TO")
@click.argument("amount_nanos", metavar="USD", type=USD)
@click.option("--reason", required=True, help="Stands in the ledger and in the audit log.")
@system_command
def correct(system: System, giver: str, taker: str, amount_nanos: int, reason: str) -> None:
    """Book a correction from one side to another: `account:12`, `revenue` or `outside`. Nothing is ever edited."""
    lines = [
        CorrectionLine(side=giver, amount_nanos=-amount_nanos),
        CorrectionLine(side=taker, amount_nanos=amount_nanos),
    ]
    with AdminApi(system.connection) as api:
        made = api.post("/books/corrections", Correction, Correct(lines=lines, reason=reason))
    if system.as_json:
        print_json(made)
        return
    for line in made.lines:
        click.echo(f"{line.side:<20} {dollars(line.amount_nanos):>20}")
    click.echo(f"booked as {made.id}: {made.reason}")


def _verify_there(api: AdminApi) -> BooksReport:
    """Ask a settler, and wait for it."""
    job, asked = api.post("/books/verify", BooksJob), time.monotonic()
    while job.finished_at is None:
        if job.started_at is None and time.monotonic() - asked > STARTS_WITHIN_S:
            raise NotReached("no settler takes the verification up: is one running?")
        time.sleep(LOOK_S)
        job = api.get(f"/books/jobs/{job.id}", BooksJob)
    if job.run_id is None:
        raise NotReached(f"the verification did not end: {job.error}")
    return api.get(f"/books/runs/{job.run_id}", BooksRun).report


async def _verify_here(system: System, allowed_repeats: int | None) -> BooksReport:
    engine = slow_engine(system.connection.database_url, pool_size=1)
    settler = RedisSettler(system.connection.redis_url, "books") if system.connection.redis_url else None
    url = system.connection.blob_url  # of a bucket, only gateways have the keys
    try:
        told = Books(
            engine,
            blobs=LocalBlobs(Path(url)) if url and "://" not in url else None,
            missing=settler.missing if settler else None,
        )
        began = time.monotonic()
        report = await told.verify(allowed_repeats=allowed_repeats)
        if allowed_repeats is None:  # a statement about the faults of a test says nothing of the system
            await BooksRuns(engine).keep(report, "command", round((time.monotonic() - began) * 1000))
        return report
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
