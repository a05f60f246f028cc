"""`faregate prices`: what models cost, for whom, and from when."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote as url_quote

import click

from gateway.admin.api.price_bodies import (
    CancelPrice,
    PriceListViews,
    PriceView,
    PriceViews,
    Pricing,
    PublishedView,
    PublishPrice,
)
from gateway.commands.backtest import backtest
from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.output import print_json, print_table
from gateway.commands.price_rows import LIST, MINIMUM, PER_PERCENT, ROWS, read_row
from gateway.ledger.records import Account

REASON = click.option("--reason", default="", help="Why, for the history.")
FREE = click.option("--free", is_flag=True, help="It costs nothing, and that is meant.")
BASE = click.option(
    "--base", type=click.IntRange(min=0), default=None, help="Refuse where another version came after this one."
)


@click.group()
def prices() -> None:
    """Show, set, schedule and cancel prices, and tell their history."""


@prices.command()
@click.argument("model", required=False)
@system_command
def show(system: System, model: str | None) -> None:
    """Show what is in force and what is scheduled, of one model or of all."""
    with AdminApi(system.connection) as api:
        found = api.get("/prices", PriceViews).prices
    _print([each for each in found if model in (None, each.model)], system)


@prices.command("set")
@click.argument("model")
@ROWS
@LIST
@MINIMUM
@FREE
@BASE
@REASON
@system_command
def set_price(system: System, /, model: str, rows: tuple[str, ...], **told: Any) -> None:
    """Set a price from now on, as rows of the catalog: '{usd: 0.10, per: 1M input tokens}'. Without rows it ends."""
    _publish(system, PublishPrice(model=model, price=[read_row(text) for text in rows], **told))


@prices.command()
@click.argument("model")
@click.argument("at", metavar="WHEN")
@ROWS
@LIST
@MINIMUM
@FREE
@REASON
@system_command
def schedule(system: System, /, model: str, at: str, rows: tuple[str, ...], **told: Any) -> None:
    """Set a price from an instant on: ISO 8601, UTC without a zone."""
    price = [read_row(text) for text in rows]
    _publish(system, PublishPrice(model=model, price=price, valid_from=_instant(at), **told))


@prices.command()
@click.argument("version_id", metavar="ID", type=click.IntRange(min=1))
@REASON
@system_command
def cancel(system: System, version_id: int, reason: str) -> None:
    """Call off a version that is scheduled."""
    with AdminApi(system.connection) as api:
        done = api.post(f"/prices/{version_id}/cancel", PublishedView, CancelPrice(reason=reason))
    if system.as_json:
        print_json(done)
    else:
        click.echo(f"version {done.price.id} of {done.price.model} is cancelled")


@prices.command()
@click.argument("model")
@LIST
@system_command
def history(system: System, model: str, price_list: str | None) -> None:
    """Tell all versions of one price: who set it, when, through which door and why."""
    query = {"model": model} | ({"price_list": price_list} if price_list else {})
    with AdminApi(system.connection) as api:
        found = api.get("/prices/history", PriceViews, query).prices
    _print(found, system)


@prices.command()
@system_command
def lists(system: System) -> None:
    """List the price lists."""
    with AdminApi(system.connection) as api:
        found = api.get("/price-lists", PriceListViews).price_lists
    if system.as_json:
        print_json(found)
        return
    rows = [(each.name, str(each.models), str(each.accounts)) for each in found]
    print_table(("list", "models", "accounts"), rows, frozenset(("models", "accounts")))


@prices.command("account")
@click.argument("account_id", metavar="ID", type=click.IntRange(min=1))
@LIST
@click.option("--discount", "percent", type=click.FloatRange(0, 100), default=0, help="Percent off everything.")
@system_command
def account_pricing(system: System, account_id: int, price_list: str | None, percent: float) -> None:
    """Say which list an account pays by, and what is off it."""
    body = Pricing(price_list=price_list, discount_ppm=round(percent * PER_PERCENT))
    with AdminApi(system.connection) as api:
        done = api.post(f"/accounts/{url_quote(str(account_id))}/pricing", Account, body)
    if system.as_json:
        print_json(done)
    else:
        by = price_list or "list prices"
        click.echo(f"account {done.id} ({done.name}) pays {by}, less {done.discount_ppm / PER_PERCENT:g}%")


def _publish(system: System, body: PublishPrice) -> None:
    with AdminApi(system.connection) as api:
        done = api.post("/prices", PublishedView, body)
    if system.as_json:
        print_json(done)
        return
    price = done.price
    since = "now" if price.state == "in_force" else f"{price.valid_from:%Y-%m-%d %H:%M:%SZ}"
    click.echo(f"version {price.id} of {price.model} from {since}: {_words(price)}")


def _instant(text: str) -> datetime:
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 instant", param_hint="WHEN") from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _print(found: list[PriceView], system: System) -> None:
    if system.as_json:
        print_json(found)
        return
    heads = ("id", "model", "list", "price", "state", "from", "by", "reason")
    print_table(heads, [_cells(each) for each in found], frozenset(("id",)))


def _words(price: PriceView) -> str:
    rows = "; ".join(row.text for row in price.price) or "not for sale"
    return f"{rows}; at least ${price.minimum_usd}" if price.minimum_usd else rows


def _cells(price: PriceView) -> tuple[str, ...]:
    return (
        str(price.id),
        price.model,
        price.price_list or "",
        _words(price),
        price.state.replace("_", " "),
        f"{price.valid_from:%Y-%m-%d %H:%M:%SZ}",
        f"{price.author or '-'} ({price.door})",
        price.reason if price.cancelled is None else f"cancelled: {price.cancelled.reason}",
    )


prices.add_command(backtest)

commands: list[click.Command] = [prices]
