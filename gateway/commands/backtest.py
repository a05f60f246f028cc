"""`faregate prices backtest`: past usage rated again under a draft of a price or a discount."""

import time
from typing import Any

import click

from gateway.admin.api.price_bodies import BeginBacktest
from gateway.commands.client import AdminApi, CommandError, System, system_command
from gateway.commands.output import dollars, print_json, print_table
from gateway.commands.price_rows import LIST, MINIMUM, PER_PERCENT, ROWS, read_row
from gateway.pricing.backtest import Backtest, BacktestResult, Group

POLL_S = 0.3
MOST_SHOWN = 20
HEADS = ("account", "key", "requests", "before", "draft", "change", "not rated")


@click.command()
@click.argument("model", required=False)
@ROWS
@LIST
@MINIMUM
@click.option("--days", type=click.Choice(["7", "30", "90"]), default="30", show_default=True, help="How far back.")
@click.option(
    "--account", "account_id", type=click.IntRange(min=1), help="In place of a model: a discount of this one."
)
@click.option("--discount", "percent", type=click.FloatRange(0, 100), default=0, help="Percent off everything.")
@system_command
def backtest(system: System, /, rows: tuple[str, ...], days: str, percent: float, **told: Any) -> None:
    """Rate the usage of the last days again at a price of MODEL, or under a discount of an account."""
    asked = BeginBacktest(
        days=int(days), price=[read_row(text) for text in rows], discount_ppm=round(percent * PER_PERCENT), **told
    )
    with AdminApi(system.connection) as api:
        job = api.post("/backtests", Backtest, asked)
        while not job.is_over:
            time.sleep(POLL_S)
            job = api.get(f"/backtests/{job.id}", Backtest)
    if system.as_json:
        print_json(job)
    elif job.result is None:
        raise CommandError(f"backtest {job.id} is {job.state}. {job.failure}".strip())
    else:
        _print(job, job.result)


def _print(job: Backtest, result: BacktestResult) -> None:
    """Print the figures, what could not be rated, and the keys with the largest change."""
    total = result.total
    click.echo(
        f"{total.requests:,} requests of {result.keys:,} keys in {job.days} days, rated in {result.took_ms:,} ms: "
        f"{dollars(total.before_nanos)} before, {dollars(total.after_nanos)} under draft {job.digest}"
    )
    for many, nanos, said in (
        (total.unrated, total.unrated_nanos, "could not be rated: they do not say what a condition looks at"),
        (total.unsold, total.unsold_nanos, "have no price under the draft, and would be refused"),
        (total.capped, total.capped_nanos, "would pass their hold by that much; they count with their hold"),
    ):
        if many:
            click.echo(f"{many:,} requests ({dollars(nanos)}) {said}")
    print_table(HEADS, [_cells(each) for each in result.by_key[:MOST_SHOWN]], frozenset(HEADS[2:]))


def _cells(key: Group) -> tuple[str, ...]:
    sums = key.sums
    figures = (sums.before_nanos, sums.after_nanos, sums.change_nanos)
    return (
        str(key.account_id),
        key.name or str(key.id),
        f"{sums.requests:,}",
        *(dollars(each) for each in figures),
        f"{sums.unrated + sums.unsold:,}",
    )
