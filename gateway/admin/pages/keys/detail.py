"""One key: what it may do, how near its limits are, what it spent."""

from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import FromPath
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.keys.listing import TONES
from gateway.admin.pages.limit_form import PERIODS, RATES
from gateway.admin.pages.spend_chart import spend_chart
from gateway.admin.site.cards import cards
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.ledger.accounts import Accounts
from gateway.ledger.keys import Keys
from gateway.ledger.limits import LimitStore, Owner
from gateway.ledger.records import Account, Key
from gateway.reports.figures import Figures
from gateway.reports.scope import Scope


@page("/admin/keys/{key_id:int}", data=False)
async def show_key(
    view: NamedDependency[View], engine: NamedDependency[AsyncEngine], key_id: FromPath[int]
) -> Response[Any]:
    """Show one key."""
    key = await Keys(engine).show(key_id)
    account = await Accounts(engine).show(key.account_id)
    scope, figures, period = Scope(key_id=key_id), Figures(engine), view.period
    if view.wants_data:
        table = await figures.table(period.range, scope, by="model", limit=1000)
        if view.format == "json":
            return view.json({"key": key, "models": table.rows, "total": table.total})
        rows = [(row.model, row.sums.requests, row.sums.errors, row.sums.charge_nanos) for row in table.rows]
        return view.csv(f"key-{key_id}", ("model", "requests", "errors", "charge_nanos"), rows)
    found: dict[str, Any] = await cards(
        view.page_id,
        compared=figures.compared(period.range, period.before, scope),
        spend=spend_chart(engine, period, scope),
        models=figures.table(period.range, scope, by="model", limit=20),
        limits=LimitStore(engine).show(Owner("key", key_id)),
    )
    return view.render(
        "key.html",
        key=key,
        account=account,
        label=label_of(key),
        state=state_of(key, account, view),
        tones=TONES,
        periods=PERIODS,
        rates=RATES,
        **found,
    )


def label_of(key: Key) -> str:
    """Say what a key is called: its name, else how it begins."""
    return key.name or key.prefix


def state_of(key: Key, account: Account, view: View) -> str:
    """Say whether a key works."""
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= view.period.now:
        return "expired"
    return "suspended" if account.suspended_at is not None else "live"
