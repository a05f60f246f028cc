"""`faregate accounts`: who pays."""

import click

from gateway.admin.api.bodies import AccountList, Adjust, AlertUrl, CreateAccount, CreditLimit, Retention, TopUp
from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.limits import limit_command
from gateway.commands.output import SIGNED_USD, USD, dollars, print_json, print_table
from gateway.ledger.records import Account

ACCOUNT_ID = click.argument("account_id", metavar="ID", type=click.IntRange(min=1))
MONEY_HEADS = ("available", "held", "spent", "topped up", "credit limit")
PAGE = 1000


@click.group()
def accounts() -> None:
    """Create accounts, show what they have, book top-ups."""


@accounts.command()
@click.argument("name")
@click.option("--balance", "balance_nanos", type=USD, default="0", help="The opening balance, booked as a top-up.")
@click.option("--postpaid", is_flag=True, help="May go below zero, down to its credit limit.")
@click.option("--credit-limit", "credit_limit_nanos", type=USD, default="0", help="How far a postpaid account may go.")
@system_command
def create(system: System, name: str, balance_nanos: int, postpaid: bool, credit_limit_nanos: int) -> None:
    """Create an account."""
    body = CreateAccount(
        name=name,
        kind="postpaid" if postpaid else "prepaid",
        balance_nanos=balance_nanos,
        credit_limit_nanos=credit_limit_nanos,
    )
    _post(system, "/accounts", body)


@accounts.command("list")
@system_command
def list_accounts(system: System) -> None:
    """List all accounts."""
    found: list[Account] = []
    with AdminApi(system.connection) as api:
        after: int | None = 0
        while after is not None:
            page = api.get("/accounts", AccountList, {"after": str(after), "limit": str(PAGE)})
            found += page.accounts
            after = page.next_after
    if system.as_json:
        print_json(found)
    else:
        rows = [(str(one.id), one.name, _state(one), *_money(one)) for one in found]
        print_table(("id", "name", "state", *MONEY_HEADS), rows, frozenset(("id", *MONEY_HEADS)))


@accounts.command()
@ACCOUNT_ID
@system_command
def show(system: System, account_id: int) -> None:
    """Show what an account has available, held and spent."""
    with AdminApi(system.connection) as api:
        _print(system, api.get(f"/accounts/{account_id}", Account))


@accounts.command()
@ACCOUNT_ID
@click.argument("amount_nanos", metavar="USD", type=USD)
@click.option("--reason", default="", help="Stands in the ledger.")
@system_command
def top_up(system: System, account_id: int, amount_nanos: int, reason: str) -> None:
    """Book money that came in."""
    _post(system, f"/accounts/{account_id}/top-up", TopUp(amount_nanos=amount_nanos, reason=reason))


@accounts.command(context_settings={"ignore_unknown_options": True})
@ACCOUNT_ID
@click.argument("amount_nanos", metavar="USD", type=SIGNED_USD)
@click.option("--reason", required=True, help="Stands in the ledger.")
@system_command
def adjust(system: System, account_id: int, amount_nanos: int, reason: str) -> None:
    """Correct a balance, up or down: `-2.50` takes back."""
    _post(system, f"/accounts/{account_id}/adjust", Adjust(amount_nanos=amount_nanos, reason=reason))


@accounts.command()
@ACCOUNT_ID
@click.argument("credit_limit_nanos", metavar="USD", type=USD)
@system_command
def credit_limit(system: System, account_id: int, credit_limit_nanos: int) -> None:
    """Change how far a postpaid account may go below zero."""
    _post(system, f"/accounts/{account_id}/credit-limit", CreditLimit(credit_limit_nanos=credit_limit_nanos))


@accounts.command()
@ACCOUNT_ID
@click.argument("days", type=click.FloatRange(min=0, min_open=True), required=False)
@system_command
def retention(system: System, account_id: int, days: float | None) -> None:
    """Say for how many days outputs and media are kept; without DAYS, for as long as the system says."""
    keep_s = None if days is None else max(1, round(days * 86_400))
    _post(system, f"/accounts/{account_id}/retention", Retention(keep_media_s=keep_s))


@accounts.command()
@ACCOUNT_ID
@click.argument("address", metavar="URL", required=False)
@system_command
def alert_url(system: System, account_id: int, address: str | None) -> None:
    """Say where budgets that run out are told, at 50, 80 and 100%; without URL, nowhere."""
    _post(system, f"/accounts/{account_id}/alert-url", AlertUrl(alert_url=address))


@accounts.command()
@ACCOUNT_ID
@system_command
def suspend(system: System, account_id: int) -> None:
    """Stop all keys of an account, within a second."""
    _post(system, f"/accounts/{account_id}/suspend")


@accounts.command()
@ACCOUNT_ID
@system_command
def resume(system: System, account_id: int) -> None:
    """Let a suspended account work again."""
    _post(system, f"/accounts/{account_id}/resume")


def _post(system: System, path: str, body: object = None) -> None:
    with AdminApi(system.connection) as api:
        _print(system, api.post(path, Account, body))


def _print(system: System, account: Account) -> None:
    if system.as_json:
        print_json(account)
        return
    click.echo(f"account {account.id}  {account.name}  ({_state(account)})")
    print_table(MONEY_HEADS, [_money(account)], frozenset(MONEY_HEADS))


def _state(account: Account) -> str:
    return f"{account.kind}, suspended" if account.suspended_at else account.kind


def _money(account: Account) -> tuple[str, ...]:
    return (
        dollars(account.available_nanos),
        dollars(account.held_nanos),
        dollars(account.spent_nanos),
        dollars(account.topped_up_nanos),
        dollars(account.credit_limit_nanos),
    )


accounts.add_command(limit_command("account"))

commands: list[click.Command] = [accounts]
