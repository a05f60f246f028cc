"""Prices as they are written on a command line: rows of the catalog, one an argument."""

import click

from gateway.catalog.document import Mapping, Scalar, builtins
from gateway.catalog.parse import parse
from gateway.catalog.problems import CatalogError
from gateway.ledger.prices.texts import RowText

ROWS = click.argument("rows", metavar="ROW...", nargs=-1)
LIST = click.option("--list", "price_list", metavar="NAME", default=None, help="In a price list; else the list price.")
MINIMUM = click.option("--minimum", "minimum_usd", metavar="USD", default=None, help="The least that a request costs.")
PER_PERCENT = 10_000


def read_row(text: str) -> RowText:
    """Read a row of the command line. Raises click.BadParameter."""
    try:
        node = parse(text.encode(), "ROW")
    except CatalogError as error:
        raise click.BadParameter(str(error), param_hint="ROW") from None
    entries = node.entries if isinstance(node, Mapping) else {}
    usd, per = (entries.get(name, (None, None))[1] for name in ("usd", "per"))
    if not isinstance(usd, Scalar) or not isinstance(per, Scalar | None) or entries.keys() - {"usd", "per", "when"}:
        raise click.BadParameter(f"{text!r} is no row such as '{{usd: 0.10, per: 1M input tokens}}'", param_hint="ROW")
    when = builtins(entries["when"][1]) if "when" in entries else {}
    if not isinstance(when, dict):
        raise click.BadParameter("`when` is a mapping of parameters", param_hint="ROW")
    return RowText(usd=usd.text, per=per.text if per is not None else "request", when=when)
