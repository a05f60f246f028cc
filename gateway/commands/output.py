"""How commands print: a table for people, JSON for scripts."""

from collections.abc import Sequence

import click
import msgspec

from gateway.money import parse_usd, usd_text


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str] = frozenset()) -> None:
    """Print rows under their heads, as wide as they need; the columns in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for line in (heads, *rows):
        cells = (
            cell.rjust(width) if head in right else cell.ljust(width)
            for head, cell, width in zip(heads, line, widths, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def dollars(nanos: int) -> str:
    """Write nanos as US dollars with at least two decimals: `$1.50`, `-$0.000000001`."""
    whole, _, decimals = usd_text(abs(nanos)).partition(".")
    return f"{'-' if nanos < 0 else ''}${int(whole):,}.{decimals.ljust(2, '0')}"


class Dollars(click.ParamType[int]):
    """A decimal of US dollars on a command line; `signed` allows a minus."""

    name = "usd"

    def __init__(self, *, signed: bool = False) -> None:
        self._signed = signed

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it as nanos."""
        if isinstance(value, int):
            return value
        text = str(value)
        minus = self._signed and text.startswith("-")
        try:
            nanos = parse_usd(text.removeprefix("-") if minus else text)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return -nanos if minus else nanos


USD = Dollars()
SIGNED_USD = Dollars(signed=True)
