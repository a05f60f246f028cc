"""All accounts, those that run out first at the top."""

from typing import Any

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.cards import card
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.errors import InvalidRequest
from gateway.reports.account_standing import PAGE, RATE_DAYS, SPENT_DAYS, AccountRow, account_rows

COLUMNS = (
    "id", "name", "kind", "state", "available_nanos", "credit_limit_nanos", "held_nanos", "spent_30d_nanos",
    "rate_nanos", "days_left", "live_keys", "discount_ppm",
)  # fmt: skip
TONES = {"active": "good", "suspended": "warn", "empty": "bad"}
SOON_DAYS = 7


@page("/admin/accounts")
async def show_accounts(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List accounts."""
    if view.format != "html":
        plain = [{name: getattr(row, name) for name in COLUMNS} for row in await account_rows(engine)]
        if view.format == "json":
            return view.json({"accounts": plain})
        return view.csv("accounts", COLUMNS, [list(row.values()) for row in plain])
    found = await card(account_rows(engine), "rows", view.page_id)
    text = view.query.get("q", "").strip().lower()[:200]
    rows = [row for row in found.value or [] if text in row.name.lower() or text == str(row.id)]
    begin = _begin(view, rows)
    shown = rows[begin : begin + PAGE]
    return view.render(
        "accounts.html",
        found=found,
        rows=shown,
        counted=len(rows),
        chips=[("q", "Name", view.query["q"])] if text else [],
        next_after=shown[-1].id if begin + PAGE < len(rows) else None,
        totals=_totals(rows),
        tones=TONES,
        soon=SOON_DAYS,
        rate_days=RATE_DAYS,
        spent_days=SPENT_DAYS,
    )


def _begin(view: View, rows: list[AccountRow]) -> int:
    """Find where the page begins: after the account that the page before ended with, wherever it stands by now."""
    after = view.query.get("after", "")
    if after and not (after.isascii() and after.isdigit() and len(after) < 19):
        raise InvalidRequest("'after' is the number of an account.", param="after")
    return next((at + 1 for at, row in enumerate(rows) if after and row.id == int(after)), 0)


def _totals(rows: list[AccountRow]) -> dict[str, int]:
    names = ("available_nanos", "held_nanos", "spent_30d_nanos", "live_keys")
    return {name: sum([getattr(row, name) for row in rows]) for name in names}
