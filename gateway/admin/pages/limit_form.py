"""The form of the limits of an account or a key: its fields as they stand, and what was typed."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.admin.pages.amounts import read_optional_count, read_optional_usd
from gateway.admin.site.figures import count, usd
from gateway.errors import InvalidRequest
from gateway.ledger.limit_records import LimitChanges, Limits, Period, RateKind, RateLimit
from gateway.money import usd_text

PERIODS: Mapping[Period, str] = {"day": "a day", "week": "a week", "month": "a month", "total": "in all"}
RATES: Mapping[RateKind, str] = {
    "requests": "Requests a minute",
    "tokens": "Tokens a minute",
    "concurrent": "Requests at once",
}


def limit_fields(limits: Limits, total_nanos: int | None) -> list[dict[str, Any]]:
    """Give the fields with the limits that hold now; `total_nanos` is the budget in all."""
    fields: list[dict[str, Any]] = []
    for period, words in PERIODS.items():
        budget = limits.budgets.get(period)
        now = total_nanos if period == "total" else budget.limit_nanos if budget else None
        hint = f"{usd(budget.used_nanos)} used" if budget else "UTC" if period != "total" else ""
        fields.append(
            {
                "name": period,
                "label": f"Budget {words}, US dollars",
                "value": "" if now is None else usd_text(now),
                "hint": hint,
            }
        )
    for what, label in RATES.items():
        rate = limits.rates.get(what)
        hint = f"{count(rate.used)} now" if rate else ""
        fields.append({"name": what, "label": label, "value": "" if rate is None else str(rate.most), "hint": hint})
    return fields


def read_limits(form: Mapping[str, str], limits: Limits) -> tuple[LimitChanges, int | None]:
    """Read the limits, and the budget in all apart; an empty field is none. Raises InvalidRequest naming the field."""
    budgets: dict[Period, int | None] = {
        period: read_optional_usd(form.get(period, ""), period) for period in PERIODS if period != "total"
    }
    rates: dict[RateKind, RateLimit | None] = {}
    for what in RATES:
        most, before = read_optional_count(form.get(what, ""), what), limits.rates.get(what)
        burst = before.burst if before and most is not None and before.burst and before.burst <= most else None
        rates[what] = None if most is None else RateLimit(most=most, burst=burst)
    return LimitChanges(budgets=budgets, rates=rates), read_optional_usd(form.get("total", ""), "total")


def field_of(error: InvalidRequest) -> str:
    """Give the field of the form that an error of the store is about."""
    return (error.param or "").rpartition(".")[2]


def sentences(limits: Limits) -> Sequence[str]:
    """Say each limit in words."""
    words = [
        f"{usd(state.limit_nanos)} {PERIODS[period]}, {usd(state.left_nanos)} left"
        for period, state in limits.budgets.items()
    ]
    return [*words, *(f"{RATES[what].lower()}: {count(state.most)}" for what, state in limits.rates.items())]
