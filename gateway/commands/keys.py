"""`faregate keys`: what callers present."""

from datetime import UTC, datetime
from typing import Any

import click

from gateway.admin.api.bodies import CreateKey, EditKey, KeyList
from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.limits import NONE, OrNone, limit_command
from gateway.commands.output import USD, dollars, print_json, print_table
from gateway.ledger.records import Issued, Key

PAGE = 1000


MODELS = click.option(
    "--model", "models", multiple=True, metavar="NAME", help="A model that it may call, or a pattern such as 'team/*'."
)
ADDRESSES = click.option(
    "--address", "addresses", multiple=True, metavar="CIDR", help="An address or network that it may be used from."
)


@click.group()
def keys() -> None:
    """Create, list, edit, limit and revoke API keys."""


@keys.command()
@click.option("--account", "account_id", metavar="ID", type=click.IntRange(min=1), required=True, help="Who pays.")
@click.option("--name", default="", help="What the key is for.")
@click.option("--budget", "budget_nanos", type=USD, default=None, help="The most it may spend in all.")
@click.option("--expires", metavar="WHEN", default=None, help="When it ends: an ISO 8601 instant, UTC without a zone.")
@MODELS
@ADDRESSES
@system_command
def create(system: System, /, account_id: int, name: str, budget_nanos: int | None, **given: Any) -> None:
    """Make an API key. It is shown this once."""
    body = CreateKey(
        account_id=account_id,
        name=name,
        budget_nanos=budget_nanos,
        expires_at=_instant(given["expires"]),
        models=list(given["models"]) or None,
        addresses=list(given["addresses"]) or None,
    )
    with AdminApi(system.connection) as api:
        issued = api.post("/keys", Issued, body)
    if system.as_json:
        print_json(issued)
        return
    click.echo(issued.key)
    click.echo(f"key {issued.id} of account {issued.account_id}: store it now, it is not shown again", err=True)


@keys.command("list")
@click.option("--account", "account_id", metavar="ID", type=click.IntRange(min=1), help="Only of this account.")
@system_command
def list_keys(system: System, account_id: int | None) -> None:
    """List keys, never their secrets."""
    query = {"limit": str(PAGE)} | ({"account": str(account_id)} if account_id else {})
    found: list[Key] = []
    with AdminApi(system.connection) as api:
        after: int | None = 0
        while after is not None:
            page = api.get("/keys", KeyList, {**query, "after": str(after)})
            found += page.keys
            after = page.next_after
    if system.as_json:
        print_json(found)
        return
    heads = ("id", "account", "name", "key", "state", "used", "budget", "last used")
    print_table(heads, [_row(one) for one in found], frozenset(("id", "account", "used", "budget")))


@keys.command()
@click.argument("key_id", metavar="ID", type=click.IntRange(min=1))
@click.option("--name", default=None, help="What the key is for.")
@click.option("--budget", type=OrNone(USD), default=None, help="The most it may spend in all; 'none' lifts it.")
@click.option("--expires", metavar="WHEN", default=None, help="When it ends, or 'none' for never.")
@MODELS
@ADDRESSES
@click.option("--any-model", is_flag=True, help="It may call every model.")
@click.option("--any-address", is_flag=True, help="It may be used from anywhere.")
@system_command
def edit(system: System, /, key_id: int, **given: Any) -> None:
    """Change a key, within a second in every gateway; what is not given stays as it is."""
    for name, anything in (("models", "any_model"), ("addresses", "any_address")):
        if given[name] and given[anything]:
            raise click.UsageError(f"--{anything.replace('_', '-')} does not go with a list")
    fields: dict[str, Any] = {}
    if given["name"] is not None:
        fields["name"] = given["name"]
    if given["budget"] is not None:
        fields["budget_nanos"] = None if given["budget"] == NONE else given["budget"]
    if given["expires"] is not None:
        fields["expires_at"] = None if given["expires"] == NONE else _instant(given["expires"])
    for name, anything in (("models", "any_model"), ("addresses", "any_address")):
        if given[name] or given[anything]:
            fields[name] = list(given[name]) or None
    with AdminApi(system.connection) as api:
        edited = api.post(f"/keys/{key_id}/edit", Key, EditKey(**fields))
    if system.as_json:
        print_json(edited)
        return
    heads = ("id", "account", "name", "key", "state", "used", "budget", "last used")
    print_table(heads, [_row(edited)], frozenset(("id", "account", "used", "budget")))
    click.echo(f"models: {', '.join(edited.models or ['any'])}; addresses: {', '.join(edited.addresses or ['any'])}")


@keys.command()
@click.argument("key_id", metavar="ID", type=click.IntRange(min=1))
@system_command
def revoke(system: System, key_id: int) -> None:
    """Stop a key for good, within a second."""
    with AdminApi(system.connection) as api:
        revoked = api.post(f"/keys/{key_id}/revoke", Key)
    if system.as_json:
        print_json(revoked)
    else:
        click.echo(f"key {revoked.id} ({revoked.prefix}...) is revoked")


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 instant", param_hint="--expires") from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= datetime.now(UTC) else "live"


def _row(key: Key) -> tuple[str, ...]:
    return (
        str(key.id),
        str(key.account_id),
        key.name,
        f"{key.prefix}...",
        _state(key),
        dollars(key.used_nanos),
        dollars(key.budget_nanos) if key.budget_nanos is not None else "none",
        f"{key.last_used_at:%Y-%m-%d %H:%M:%SZ}" if key.last_used_at else "never",
    )


keys.add_command(limit_command("key"))

commands: list[click.Command] = [keys]
