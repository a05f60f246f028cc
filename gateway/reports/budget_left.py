"""What is left of a key's budgets, and until when it lasts at the present rate."""

from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.ledger.keys import Keys
from gateway.ledger.limits import LimitStore, Owner
from gateway.reports.figures import Figures
from gateway.reports.ranges import HOUR, Range
from gateway.reports.scope import Scope

RATE_SPAN = timedelta(days=7)
"""The present rate is that of the last seven days, or of the key's life where that is shorter."""

WORDS = {"day": "a day", "week": "a week", "month": "a month", "total": "in all"}
_PERIODS = tuple(WORDS)


class BudgetLeft(msgspec.Struct, frozen=True, kw_only=True):
    """One budget."""

    period: str
    words: str
    limit_nanos: int
    used_nanos: int
    left_nanos: int
    resets_at: datetime | None
    """None for a budget in all."""
    runs_out_at: datetime | None
    """At the present rate; None where it lasts until its reset, or where nothing is spent."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """All budgets of a key, the nearest to its end first, and its present rate."""

    budgets: tuple[BudgetLeft, ...]
    day_nanos: int
    """What it spends in a day at the present rate."""


async def budget_left(engine: AsyncEngine, key_id: int, now: datetime | None = None) -> Left:
    """Read what is left to a key. Raises NotFound, TookTooLong, and Unavailable while Postgres is away."""
    now = now or datetime.now(UTC)
    key = await Keys(engine).show(key_id)
    limits = await LimitStore(engine).show(Owner("key", key_id))
    end = now.replace(minute=0, second=0, microsecond=0) + HOUR
    begin = max(end - RATE_SPAN, key.created_at.replace(minute=0, second=0, microsecond=0))
    spent = (await Figures(engine).totals(Range(begin, end), Scope(key_id=key_id))).charge_nanos
    seconds = max(int((now - begin).total_seconds()), 3600)
    budgets = [
        BudgetLeft(
            period=period,
            words=WORDS[period],
            limit_nanos=state.limit_nanos,
            used_nanos=state.used_nanos,
            left_nanos=state.left_nanos,
            resets_at=state.resets_at,
            runs_out_at=_runs_out(state.left_nanos, spent, seconds, now, state.resets_at),
        )
        for period, state in limits.budgets.items()
    ]
    if key.budget_nanos is not None and not any(each.period == "total" for each in budgets):
        left = max(key.budget_nanos - key.used_nanos, 0)
        budgets.append(
            BudgetLeft(
                period="total",
                words=WORDS["total"],
                limit_nanos=key.budget_nanos,
                used_nanos=key.used_nanos,
                left_nanos=left,
                resets_at=None,
                runs_out_at=_runs_out(left, spent, seconds, now, None),
            )
        )
    budgets.sort(key=lambda each: (each.runs_out_at or datetime.max.replace(tzinfo=UTC), _PERIODS.index(each.period)))
    return Left(budgets=tuple(budgets), day_nanos=spent * 86_400 // seconds)


def _runs_out(left: int, spent: int, seconds: int, now: datetime, resets_at: datetime | None) -> datetime | None:
    if left <= 0:
        return now
    if spent <= 0:
        return None
    lasts_s = left * seconds // spent
    if lasts_s > 10 * 366 * 86_400:
        return None
    at = now + timedelta(seconds=lasts_s)
    return at if resets_at is None or at < resets_at else None
