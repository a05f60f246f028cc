"""One account: what it has, for how long that lasts, its keys, and the movements of its money."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.accounts.listing import TONES
from gateway.admin.pages.limit_form import PERIODS, RATES
from gateway.admin.pages.spend_chart import Drawn, spend_chart
from gateway.admin.site.cards import cards
from gateway.admin.site.charts import Chart, Line
from gateway.admin.site.figures import usd
from gateway.admin.site.page import page
from gateway.admin.site.period import Period
from gateway.admin.site.view import View
from gateway.errors import InvalidRequest
from gateway.ledger.accounts import Accounts
from gateway.ledger.limits import LimitStore, Owner
from gateway.ledger.records import Account
from gateway.reports.account_standing import PAGE, RATE_DAYS, AccountRow, account_rows, balance_steps, ledger_page
from gateway.reports.asking import page_session
from gateway.reports.figures import Figures
from gateway.reports.key_standing import KeyQuery, list_keys
from gateway.reports.ranges import HOUR, Range
from gateway.reports.scope import Scope
from gateway.reports.series import Step

LEDGER_COLUMNS = ("at", "transaction_id", "kind", "amount_nanos", "reason")
MOST_EXPORTED = 100_000
KEYS_SHOWN = 10
KINDS = {"top_up": "top-up"}


@page("/admin/accounts/{account_id:int}", data=False)
async def show_account(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], account_id: FromPath[int]
) -> Response[Any]:
    """Show one account; as CSV, its ledger."""
    account = await Accounts(engine).show(account_id)
    if view.wants_data:
        rows = await ledger_page(engine, account_id, limit=MOST_EXPORTED)
        if view.format == "json":
            return view.json({"account": account, "ledger": rows})
        written = [[row.at.isoformat(), *(getattr(row, name) for name in LEDGER_COLUMNS[1:])] for row in rows]
        return view.csv(f"account-{account_id}-ledger", LEDGER_COLUMNS, written)
    scope, before = Scope(account_id=account_id), _before(view)
    found: dict[str, Any] = await cards(
        view.page_id,
        standing=_standing(engine, account_id),
        balance=_balance(engine, account, view.period),
        spend=spend_chart(engine, view.period, scope),
        keys=list_keys(engine, KeyQuery(account_id=account_id, limit=KEYS_SHOWN + 1)),
        ledger=ledger_page(engine, account_id, before=before, limit=PAGE + 1),
        limits=LimitStore(engine).show(Owner("account", account_id)),
        list_name=_list_name(engine, account.price_list_id),
    )
    ledger = found["ledger"].value or []
    last = ledger[PAGE - 1] if len(ledger) > PAGE else None
    return view.render(
        "account.html",
        account=account,
        tones=TONES,
        periods=PERIODS,
        rates=RATES,
        rate_days=RATE_DAYS,
        kinds=KINDS,
        page_size=PAGE,
        keys_shown=KEYS_SHOWN,
        next_after=f"{last.at.isoformat()}_{last.transaction_id}" if last else None,
        **found,
    )


async def _standing(engine: AsyncEngine, account_id: int) -> AccountRow:
    return (await account_rows(engine, only=account_id))[0]


async def _list_name(engine: AsyncEngine, price_list_id: int | None) -> str:
    if price_list_id is None:
        return ""
    async with page_session(engine) as session:
        return str(await session.fetchval("select name from price_list where id = $1", price_list_id))


async def _balance(engine: AsyncEngine, account: Account, period: Period) -> Drawn:
    """Draw what the account had at the end of each hour or day: from what it has now back, by what moved it.

    Holds count as what it has: they move nothing until they are charged.
    """
    scope, figures, during = Scope(account_id=account.id), Figures(engine), period.range
    step: Step = "day" if period.is_daily else "hour"
    series = await figures.series(during, scope, step=step, zone_name=period.zone_name)
    moved = await balance_steps(engine, account.id, during)
    have = account.available_nanos + account.held_nanos
    if during.to_at < period.now:
        now = period.now.replace(minute=0, second=0, microsecond=0) + HOUR
        have += (await figures.totals(Range(during.to_at, now), scope)).charge_nanos
    values = []
    for end, sums in reversed(list(zip([*series.at[1:], during.to_at], series.total, strict=True))):
        values.append(have - sum([amount for hour, amount in moved if hour >= end]))
        have += sums.charge_nanos
    values.reverse()
    line = Line(label="Balance", values=values, colour=1, unit="usd")
    chart = Chart(at=series.at, series=[line], zone_name=period.zone_name, unit="usd", daily=period.is_daily)
    return Drawn(chart=chart, sentence=f"From {usd(values[0])} to {usd(values[-1])}, open holds included.")


def _before(view: View) -> tuple[datetime, str] | None:
    after = view.query.get("after", "")
    if not after:
        return None
    at, _, number = after.partition("_")
    try:
        return msgspec.convert(at.replace(" ", "+"), datetime), str(UUID(number))
    except (msgspec.ValidationError, ValueError):
        raise InvalidRequest("'after' is where the page before ended.", param="after") from None
