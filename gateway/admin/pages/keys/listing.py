"""All keys, those nearest to the end of a budget first."""

from typing import Any, get_args

from litestar import Response
from litestar.di import NamedDependency
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.cards import cards
from gateway.admin.site.page import page
from gateway.admin.site.view import View
from gateway.errors import InvalidRequest
from gateway.ledger.accounts import Accounts
from gateway.reports.key_standing import PAGE, KeyQuery, KeyRow, KeyState, count_keys, list_keys

MOST_EXPORTED = 10_000
COLUMNS = (
    "id", "name", "prefix", "account_id", "account", "state", "limit_period", "limit_nanos", "used_nanos",
    "requests_most", "peak", "last_used_at", "expires_at",
)  # fmt: skip
STATES = (("live", "Live"), ("stopped", "Stopped"), ("all", "All"))
TONES = {"live": "good", "revoked": "off", "expired": "off", "suspended": "warn"}


@page("/admin/keys")
async def show_keys(view: NamedDependency[View], engine: NamedDependency[AsyncEngine]) -> Response[Any]:
    """List keys."""
    query = _read(view)
    if view.format != "html":
        rows = await list_keys(engine, KeyQuery(**_same(query), limit=MOST_EXPORTED))
        if view.format == "json":
            return view.json({"keys": rows})
        return view.csv("keys", COLUMNS, [[_cell(row, name) for name in COLUMNS] for row in rows])
    found: dict[str, Any] = await cards(
        view.page_id,
        rows=list_keys(engine, KeyQuery(**_same(query), after=query.after, limit=PAGE + 1)),
        counted=count_keys(engine, query),
    )
    chips = [("q", "Name or beginning", query.text)] if query.text else []
    if query.account_id is not None:
        chips.append(("account", "Account", (await Accounts(engine).show(query.account_id)).name))
    listed: list[KeyRow] = found["rows"].value or []
    after = f"{listed[PAGE - 1].share_ppm}_{listed[PAGE - 1].id}" if len(listed) > PAGE else None
    return view.render("keys.html", chips=chips, states=STATES, state=query.state, tones=TONES, shown=PAGE,
                       next_after=after, **found)  # fmt: skip


def _same(query: KeyQuery) -> dict[str, Any]:
    return {"text": query.text, "account_id": query.account_id, "state": query.state}


def _read(view: View) -> KeyQuery:
    state, account, after = (view.query.get(name, "") for name in ("state", "account", "after"))
    if state and state not in get_args(KeyState):
        raise InvalidRequest("'state' is live, stopped or all.", param="state")
    if account and not (account.isascii() and account.isdigit() and len(account) < 19):
        raise InvalidRequest("'account' is the number of an account.", param="account")
    return KeyQuery(
        text=view.query.get("q", "").strip()[:200],
        account_id=int(account) if account else None,
        state=state or ("all" if view.query.get("q") else "live"),  # type: ignore[arg-type]
        after=_place(after) if after else None,
    )


def _place(text: str) -> tuple[int, int]:
    share, _, number = text.partition("_")
    try:
        return int(share[:20]), int(number[:20])
    except ValueError:
        raise InvalidRequest("'after' is where the page before ended.", param="after") from None


def _cell(row: KeyRow, name: str) -> object:
    value = getattr(row, name)
    return value.isoformat() if name.endswith("_at") and value is not None else value
