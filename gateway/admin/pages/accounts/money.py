"""Money of an account: topping up, adjusting, and how far it may go below zero. Each form says what it comes to."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.pages.accounts.asking import Values, account_form, number_field, read_number
from gateway.admin.pages.amounts import read_usd
from gateway.admin.site.figures import usd_exact
from gateway.ledger.accounts import Accounts
from gateway.ledger.audit import Actor
from gateway.money import usd_text


async def ask_top_up(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask how much came in."""
    account = await Accounts(engine).show(account_id)
    return {
        "title": f"Top up {account.name}",
        "button": "Book the top-up",
        "effects": [
            f"It has {usd_exact(account.available_nanos)} available and {usd_exact(account.held_nanos)} held. "
            "What you book is available at once."
        ],
        "fields": [
            {"name": "amount", "label": "Amount in US dollars", "required": True},
            {"name": "reason", "label": "Reason", "hint": "An invoice or a payment; stands in the ledger."},
            number_field(values),
        ],
    }


async def top_up(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Book it."""
    amount = read_usd(values.get("amount", ""), "amount")
    number = read_number(values.get("transaction_id", ""))
    account = await Accounts(engine).top_up(
        account_id, amount, reason=values.get("reason", ""), transaction_id=number, by=by
    )
    return f"{usd_exact(amount)} is booked: {account.name} has {usd_exact(account.available_nanos)} available."


async def ask_adjust(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask by how much a balance is wrong, and why."""
    account = await Accounts(engine).show(account_id)
    least = account.available_nanos + account.credit_limit_nanos
    return {
        "title": f"Adjust {account.name}",
        "button": "Book the adjustment",
        "effects": [
            f"It has {usd_exact(account.available_nanos)} available; at most {usd_exact(max(least, 0))} can be taken.",
            "An adjustment is money from outside, or back there: to give a charge back, refund its request.",
        ],
        "fields": [
            {"name": "amount", "label": "Amount in US dollars", "required": True, "hint": "-2.50 takes back."},
            {"name": "reason", "label": "Reason", "hint": "Stands in the ledger and the audit log.", "required": True},
            number_field(values),
        ],
    }


async def adjust(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Correct it."""
    amount = read_usd(values.get("amount", ""), "amount", signed=True)
    number = read_number(values.get("transaction_id", ""))
    account = await Accounts(engine).adjust(
        account_id, amount, reason=values.get("reason", ""), transaction_id=number, by=by
    )
    return f"Adjusted by {usd_exact(amount)}: {account.name} has {usd_exact(account.available_nanos)} available."


async def ask_credit_limit(engine: AsyncEngine, account_id: int, values: Values) -> dict[str, Any]:
    """Ask how far it may go below zero."""
    account = await Accounts(engine).show(account_id)
    limit = usd_text(account.credit_limit_nanos)
    return {
        "title": f"Credit limit of {account.name}",
        "button": "Set the limit",
        "effects": [f"It owes {usd_exact(max(-account.available_nanos, 0))}: the limit cannot be below that."],
        "fields": [{"name": "limit", "label": "Credit limit, US dollars", "value": limit}],
    }


async def credit_limit(engine: AsyncEngine, account_id: int, values: Values, by: Actor) -> str:
    """Change it."""
    limit = read_usd(values.get("limit", ""), "limit")
    account = await Accounts(engine).set_credit_limit(account_id, limit, by=by)
    return f"{account.name} may go down to {usd_exact(-account.credit_limit_nanos)}."


MONEY = (
    *account_form("top-up", ask_top_up, top_up),
    *account_form("adjust", ask_adjust, adjust),
    *account_form("credit-limit", ask_credit_limit, credit_limit),
)
