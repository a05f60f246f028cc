"""`faregate refunds`: charges that are given back."""

from uuid import UUID

import click

from gateway.admin.api.bodies import GiveRefund, RefundList
from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.output import USD, dollars, print_json, print_table
from gateway.ledger.records import Refund, RequestRefunds

HEADS = ("at", "refund", "request", "account", "amount", "by", "reason")


@click.group()
def refunds() -> None:
    """Give charges back, in part or in full, and list what was given back."""


@refunds.command()
@click.argument("request_id", metavar="REQUEST")
@click.argument("amount_nanos", metavar="[USD]", type=USD, required=False)
@click.option("--reason", required=True, help="Stands in the ledger and the audit log.")
@click.option(
    "--transaction-id", type=click.UUID, default=None, help="A UUID of yours: repeated, nothing is given back twice."
)
@system_command
def give(system: System, request_id: str, amount_nanos: int | None, reason: str, transaction_id: UUID | None) -> None:
    """Give a charge back: USD of it, or without that all that is left."""
    body = GiveRefund(reason=reason, amount_nanos=amount_nanos, transaction_id=transaction_id)
    with AdminApi(system.connection) as api:
        made = api.post(f"/requests/{request_id}/refunds", Refund, body)
    if system.as_json:
        print_json(made)
    else:
        click.echo(f"{dollars(made.amount_nanos)} of {made.request_id} is given back to account {made.account_id}")


@refunds.command()
@click.argument("request_id", metavar="REQUEST")
@system_command
def show(system: System, request_id: str) -> None:
    """Show what a request was charged, and what of it was given back."""
    with AdminApi(system.connection) as api:
        found = api.get(f"/requests/{request_id}/refunds", RequestRefunds)
    if system.as_json:
        print_json(found)
        return
    click.echo(
        f"charged {dollars(found.charge_nanos)}, given back {dollars(found.refunded_nanos)}, "
        f"left {dollars(found.left_nanos)}"
    )
    if found.refunds:
        _print(found.refunds)


@refunds.command("list")
@click.option("--account", "account_id", metavar="ID", type=click.IntRange(min=1), help="Only of this account.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at most.")
@system_command
def list_refunds(system: System, account_id: int | None, limit: int) -> None:
    """List refunds, the latest first."""
    query = {"limit": str(limit)} | ({"account": str(account_id)} if account_id else {})
    with AdminApi(system.connection) as api:
        page = api.get("/refunds", RefundList, query)
    if system.as_json:
        print_json(page.refunds)
    else:
        _print(page.refunds)


def _print(found: list[Refund]) -> None:
    rows = [
        (
            f"{one.at:%Y-%m-%d %H:%M:%SZ}",
            str(one.id),
            one.request_id,
            str(one.account_id),
            dollars(one.amount_nanos),
            one.actor,
            one.reason,
        )
        for one in found
    ]
    print_table(HEADS, rows, frozenset(("account", "amount")))


commands: list[click.Command] = [refunds]
