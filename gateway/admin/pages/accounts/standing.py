"""Whether an account's keys work, its limits, and where it is told of budgets that run out."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.accounts.asking import Values, account_form
from gateway.admin.pages.limit_form import limit_fields, read_limits
from gateway.admin.site.figures import count, usd
from gateway.ledger.accounts import Accounts
from gateway.ledger.audit import Actor
from gateway.ledger.limit_records import LimitChanges
from gateway.ledger.limits import LimitStore, Owner
from gateway.reports.account_standing import AccountRow, account_rows
from gateway.reports.request_list import list_open

MOST_OPEN = 1000


async def ask_suspend(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask before its keys stop."""
    row = await _row(engine, account_id)
    still = await list_open(engine, account_id=account_id, limit=MOST_OPEN)
    return {
        "title": f"Suspend {row.name}",
        "button": "Suspend it",
        "danger": True,
        "effects": [
            f"Its {count(row.live_keys)} live keys are refused within a second, in every gateway.",
            f"{count(len(still))} of its requests are open, {usd(row.held_nanos)} held: they end as they would.",
            f"It spent {usd(row.spent_30d_nanos)} in the last 30 days. Resuming lets the same keys work again.",
        ],
    }


async def suspend(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Stop its keys."""
    account = await Accounts(engine).suspend(account_id, by=by)
    return f"{account.name} is suspended."


async def ask_resume(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask before its keys work again."""
    row = await _row(engine, account_id)
    return {
        "title": f"Resume {row.name}",
        "button": "Resume it",
        "effects": [
            f"Its {count(row.live_keys)} live keys work again within a second; it has {usd(row.available_nanos)}."
        ],
    }


async def resume(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Let its keys work again."""
    account = await Accounts(engine).resume(account_id, by=by)
    return f"{account.name} goes on."


async def ask_limits(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask for its limits."""
    account = await Accounts(engine).show(account_id)
    limits = await LimitStore(engine).show(Owner("account", account_id))
    total = limits.budgets.get("total")
    return {
        "title": f"Limits of {account.name}",
        "button": "Set the limits",
        "effects": ["They hold for all its keys together, beside each key's own. An empty field is no limit."],
        "fields": limit_fields(limits, total.limit_nanos if total else None),
    }


async def change_limits(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Set and lift them."""
    store, owner = LimitStore(engine), Owner("account", account_id)
    changes, total_nanos = read_limits(values, await store.show(owner))
    whole = LimitChanges(budgets={**changes.budgets, "total": total_nanos}, rates=changes.rates)
    await store.change(owner, whole, by=by)
    return "The limits are set."


async def ask_alerts(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask where it wants to be told of budgets."""
    account = await Accounts(engine).show(account_id)
    return {
        "title": f"Alerts of {account.name}",
        "button": "Set the address",
        "effects": ["It is told by webhook when 50, 80 and 100% of a budget are used, its own and its keys'."],
        "fields": [
            {"name": "url", "label": "Address", "value": account.alert_url or "", "hint": "https://… Empty is none."}
        ],
    }


async def change_alerts(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Change it."""
    await Accounts(engine).set_alert_url(account_id, values.get("url") or None, by=by)
    return "The address for alerts is set."


async def _row(engine: AsyncEngine, account_id: int) -> AccountRow:
    await Accounts(engine).show(account_id)
    (row,) = await account_rows(engine, only=account_id)
    return row


STANDING = (
    *account_form("suspend", ask_suspend, suspend),
    *account_form("resume", ask_resume, resume),
    *account_form("limits", ask_limits, change_limits),
    *account_form("alerts", ask_alerts, change_alerts),
)
