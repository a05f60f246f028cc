"""`faregate accounts limit`, `faregate keys limit`: what may be spent in a period, asked for in a minute, be open."""

from datetime import UTC, datetime
from typing import Any

import click

from gateway.commands.client import AdminApi, System, system_command
from gateway.commands.output import USD, dollars, print_json, print_table
from gateway.ledger.limit_records import MOST_RATE, LimitChanges, Limits, OwnerKind, Period, RateKind, RateLimit

PERIODS: tuple[Period, ...] = ("day", "week", "month", "total")
RATES: tuple[RateKind, ...] = ("requests", "tokens", "concurrent")
NONE = "none"


class OrNone(click.ParamType[Any]):
    """A value of another kind, or `none`, which lifts the limit."""

    def __init__(self, kind: click.ParamType[Any]) -> None:
        self.name = f"{kind.name}|{NONE}"
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it; `none` as itself."""
        return value if value == NONE else self._kind.convert(value, param, ctx)


_ARTICLES: dict[OwnerKind, str] = {"account": "an", "key": "a"}
_BUDGET = OrNone(USD)
_COUNT = OrNone(click.IntRange(1, MOST_RATE))


def limit_command(owner: OwnerKind) -> click.Command:
    """Make the command `limit` of accounts or of keys."""

    @click.command("limit", help=f"Set or lift limits of {_ARTICLES[owner]} {owner}; without options, show them.")
    @click.argument("owner_id", metavar="ID", type=click.IntRange(min=1))
    @click.option("--day", type=_BUDGET, help="The most it may spend in a day of UTC; 'none' lifts it.")
    @click.option("--week", type=_BUDGET, help="In a week, from Monday.")
    @click.option("--month", type=_BUDGET, help="In a calendar month.")
    @click.option("--total", type=_BUDGET, help="In all.")
    @click.option("--requests", type=_COUNT, help="The most requests in any 60 seconds.")
    @click.option("--requests-burst", type=click.IntRange(1, MOST_RATE), help="The most of them within two seconds.")
    @click.option("--tokens", type=_COUNT, help="The most tokens in any 60 seconds, in and out.")
    @click.option("--tokens-burst", type=click.IntRange(1, MOST_RATE), help="The most of them within two seconds.")
    @click.option("--concurrent", type=_COUNT, help="The most requests that are open at once.")
    @system_command
    def limit(system: System, /, owner_id: int, **given: Any) -> None:
        changes = _changes(given)
        path = f"/{owner}s/{owner_id}/limits"
        with AdminApi(system.connection) as api:
            asked = changes.budgets or changes.rates
            limits = api.post(path, Limits, changes) if asked else api.get(path, Limits)
        if system.as_json:
            print_json(limits)
        else:
            print_table(("limit", "most", "used", "left", "until"), _rows(limits), frozenset(("most", "used", "left")))

    return limit


def _changes(given: dict[str, Any]) -> LimitChanges:
    def value(name: str) -> Any:
        return None if given[name] == NONE else given[name]

    budgets = {period: value(period) for period in PERIODS if given[period] is not None}
    rates: dict[RateKind, RateLimit | None] = {}
    for what in RATES:
        burst = given.get(f"{what}_burst")
        if given[what] is None and burst is not None:
            raise click.UsageError(f"--{what}-burst goes with --{what}")
        if given[what] is not None:
            rates[what] = None if value(what) is None else RateLimit(most=value(what), burst=burst)
    return LimitChanges(budgets=budgets, rates=rates)


def _rows(limits: Limits) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            "spent in all" if period == "total" else f"spent in a {period}",
            dollars(budget.limit_nanos),
            dollars(budget.used_nanos),
            dollars(budget.left_nanos),
            _instant(budget.resets_at),
        )
        for period in PERIODS
        if (budget := limits.budgets.get(period)) is not None
    ]
    for what in RATES:
        rate = limits.rates.get(what)
        if rate is not None:
            name = "requests at once" if what == "concurrent" else f"{what} a minute"
            burst = "" if rate.burst is None else f" (burst {rate.burst:,})"
            rows.append((name, f"{rate.most:,}{burst}", f"{rate.used:,}", f"{rate.left:,}", ""))
    return rows


def _instant(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%MZ}"
