"""`faregate usage`: what was used and charged."""

import click
from msgspec import UNSET

from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.output import dollars, print_json, print_table
from gateway.reports.table import COLUMNS, UsageRow, UsageTable

UNITS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "characters": "characters",
    "images": "images",
    "audio s": "audio_ms",
    "video s": "video_ms",
}
"""Heads of the table and the measures under them; a column of zeros is left out. Milliseconds are shown as seconds."""


@click.command()
@click.option("--from", "from_text", metavar="WHEN", help="A date or ISO 8601 instant; 30 days before --to.")
@click.option("--to", "to_text", metavar="WHEN", help="A date or ISO 8601 instant; now.")
@click.option(
    "--group-by", default="model", show_default=True, help="day, hour, account, key, model, task, outcome, route."
)
@click.option("--account", metavar="ID", help="Only this account.")
@click.option("--key", metavar="ID", help="Only this key.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@system_command
def usage(system: System, /, from_text: str | None, to_text: str | None, as_csv: bool, **filters: str | None) -> None:
    """Show what was used and charged, from the hourly sums."""
    asked = {"from": from_text, "to": to_text, **filters}
    query = {name: value for name, value in asked.items() if value is not None}
    with AdminApi(system.connection) as api:
        if as_csv:
            click.echo(api.get_text("/usage", {**query, "format": "csv"}), nl=False)
            return
        table = api.get("/usage", UsageTable, {**query, "format": "json"})
    if system.as_json:
        print_json(table)
    else:
        _print(table)


def _print(table: UsageTable) -> None:
    dimensions = [column for dimension in table.group_by for column in COLUMNS[dimension]]
    units = {head: name for head, name in UNITS.items() if getattr(table.total, name)}
    heads = ("requests", "charged", *units)
    rows = [(*(_text(row, name) for name in dimensions), *_measures(row, units)) for row in table.rows]
    names = [name.replace("_", " ") for name in dimensions]
    if dimensions:
        rows.append(("total", *("" for _ in dimensions[1:]), *_measures(table.total, units)))
    elif not rows:
        rows.append(_measures(table.total, units))
    click.echo(f"{table.from_at:%Y-%m-%d %H:%MZ} to {table.to_at:%Y-%m-%d %H:%MZ}")
    print_table((*names, *heads), rows, frozenset(heads))


def _text(row: UsageRow, column: str) -> str:
    value = getattr(row, column)
    if column == "hour":
        return f"{value:%Y-%m-%d %H:%MZ}"
    return "" if value is UNSET else str(value)


def _measures(sums: UsageRow, units: dict[str, str]) -> tuple[str, ...]:
    return (
        f"{sums.requests:,}",
        dollars(sums.charge_nanos),
        *(_unit(getattr(sums, name), name) for name in units.values()),
    )


def _unit(value: int, name: str) -> str:
    return f"{value / 1000:,.1f}" if name.endswith("_ms") else f"{value:,}"


commands: list[click.Command] = [usage]
