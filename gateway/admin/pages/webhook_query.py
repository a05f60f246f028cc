"""What the page of webhooks is asked for: the filters of its address."""

from collections.abc import Mapping

from gateway.errors import InvalidRequest
from gateway.webhooks.deliveries import DeliveryQuery, State

PAGE = 50
_STATES: Mapping[str, State | None] = {
    "": None,
    "pending": "pending",
    "delivered": "delivered",
    "given_up": "given_up",
}


def asked(query: Mapping[str, str]) -> DeliveryQuery:
    """Read the filters. Raises InvalidRequest, or NotFound for an id that is none."""
    account, state = query.get("account", ""), query.get("state", "")
    if state not in _STATES:
        raise InvalidRequest("'state' is pending, delivered or given_up.", param="state")
    if account and not (account.isascii() and account.isdigit() and len(account) <= 18):
        raise InvalidRequest("'account' is the id of an account.", param="account")
    return DeliveryQuery(
        account_id=int(account) if account else None,
        request_id=query.get("request", "").strip(),
        host=query.get("host", "").strip().lower(),
        state=_STATES[state],
        after=query.get("after", ""),
        limit=PAGE,
    )


def chips_of(query: DeliveryQuery) -> list[tuple[str, str, str]]:
    """Give the filters that are set, as chips."""
    named = [
        ("account", "Account", str(query.account_id or "")),
        ("host", "Host", query.host),
        ("request", "Request", query.request_id),
        ("state", "State", (query.state or "").replace("_", " ")),
    ]
    return [chip for chip in named if chip[2]]
