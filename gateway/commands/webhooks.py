"""`faregate webhooks`: what was told whom, and telling it again."""

import click

from gateway.admin.api.webhooks import DeliveryPage
from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.output import print_json, print_table
from gateway.webhooks.deliveries import Delivery

STATES = ("pending", "delivered", "given_up")


@click.group()
def webhooks() -> None:
    """List webhooks and deliver them again."""


@webhooks.command("list")
@click.option("--account", "account_id", metavar="ID", type=click.IntRange(min=1), help="Only of this account.")
@click.option("--request", "request_id", metavar="ID", default="", help="Only of this request.")
@click.option("--state", type=click.Choice(STATES), default=None, help="Only in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="The most that are shown.")
@system_command
def list_deliveries(system: System, account_id: int | None, request_id: str, state: str | None, limit: int) -> None:
    """List events, the latest first, with the last try of each."""
    asked = {"limit": str(limit), "account": str(account_id or ""), "request": request_id, "state": state or ""}
    query = {name: value for name, value in asked.items() if value}
    with AdminApi(system.connection) as api:
        found = api.get("/webhooks/deliveries", DeliveryPage, query).deliveries
    if system.as_json:
        print_json(found)
        return
    heads = ("event", "account", "state", "tries", "last try", "url")
    print_table(heads, [_row(one) for one in found], frozenset(("account", "tries")))


@webhooks.command()
@click.argument("event_id", metavar="EVENT")
@system_command
def redeliver(system: System, event_id: str) -> None:
    """Tell an event again, now, by a whole new schedule."""
    with AdminApi(system.connection) as api:
        again = api.post(f"/webhooks/deliveries/{event_id}/redeliver", Delivery)
    if system.as_json:
        print_json(again)
    else:
        click.echo(f"{again.id} is told again to {again.url}")


def _row(one: Delivery) -> tuple[str, ...]:
    last = "none"
    if one.log:
        said = one.log[0].error or f"answered {one.log[0].status}"
        last = f"{one.log[0].at:%Y-%m-%d %H:%M:%SZ} {said}"
    return one.id, str(one.account_id), one.state, str(one.tries), last, one.url


commands: list[click.Command] = [webhooks]
