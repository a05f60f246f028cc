"""What the pictures show beside the past: keys with limits, requests that run and wait, one of every outcome."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import httpx
import msgspec

from tests.system import System

CHAT = [{"role": "user", "content": "Where does the tram to the harbour leave, and who checks the fares on it?"}]
DRAFT = (
    *(("model", "painter"), ("failed", "produced")),
    *(("usd", "0.06"), ("per", "image"), ("when", "size: 1024x1024")),
    *(("usd", "0.04"), ("per", "image"), ("when", "")),
)
"""The price that the editor's picture is of."""
WAITING = 40
SHARES = (0.62, 0.97, 0.84, 0.71, 0.4, 0.33, 0.2)
"""Of their budgets, what the keys that spent the most have used."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The pages to look at by name, and the key of an owner who has some usage."""

    paths: dict[str, str]
    owner_key: str


@contextmanager
def work_in_hand(system: System, owner_key: str) -> Iterator[Places]:
    """Put work into the queues for the length of a block. `owner_key` is a key with a past."""
    with system.client(owner_key) as caller, system.admin() as admin:
        limited = _limit_keys(admin)
        _price(admin, limited[0])
        picture = _finished(caller)
        with ThreadPoolExecutor(4) as threads:
            for work in [threads.submit(_wait_in_line, caller) for _ in range(WAITING)]:
                work.result()
        yield Places(paths=_paths(picture, *limited), owner_key=owner_key)


def _finished(caller: httpx.Client) -> str:
    """Make requests of several kinds, each to its end. Answers the id of a picture."""
    wait = {"prefer": "wait=30"}
    bodies = [
        {"model": "speaker", "input": {"input": "The gate opens at nine, and the fare is four cents."}},
        {"model": "scribe", "input": {"messages": CHAT, "max_tokens": 80}},
        {"model": "filmer", "input": {"prompt": "a tram in the rain"}},
        {"model": "painter", "input": {"prompt": "a harbour at dawn", "n": 2}},
    ]
    for body in bodies:
        made = caller.post("/v1/requests", json=body, headers=wait)
        assert made.status_code == 200, made.text
    told: str = made.json()["id"]
    return told


def _wait_in_line(caller: httpx.Client) -> None:
    body = {"model": "sage", "input": {"messages": CHAT, "max_tokens": 256}}
    made = caller.post("/v1/requests", json=body)
    assert made.status_code == 202, made.text


def _limit_keys(admin: httpx.Client) -> tuple[int, int]:
    """Give the keys that spent the most a budget by the month and a rate. Answers the first one's account and id."""
    listed = admin.get("/admin/api/keys", params={"limit": 100}).json()["keys"]
    largest = sorted(listed, key=lambda key: -key["used_nanos"])
    for share, key in zip(SHARES, largest, strict=False):
        told = admin.post(f"/admin/api/keys/{key['id']}/limits", json=_limits(key["used_nanos"], share))
        told.raise_for_status()
    return largest[0]["account_id"], largest[0]["id"]


def _limits(used_nanos: int, share: float) -> dict[str, object]:
    """Make limits of which a key has used about this share: a month's budget, and a rate that nothing comes near."""
    return {"budgets": {"total": int(used_nanos / share)}, "rates": {"requests": {"most": 600}}}


def _price(admin: httpx.Client, account_id: int) -> None:
    """Give a model a history with something scheduled in it, and an account prices of its own."""
    admin.post("/admin/api/price-lists", json={"name": "partners"}).raise_for_status()
    dear = {"usd": "0.06", "per": "image", "when": {"size": "1024x1024"}}
    in_a_week = f"{datetime.now(UTC) + timedelta(days=7):%Y-%m-%dT00:00:00Z}"
    versions: list[dict[str, object]] = [
        {"price": [{"usd": "0.035", "per": "image"}], "reason": "dearer cards"},
        {"price": [dear, {"usd": "0.03", "per": "image"}], "reason": "large pictures cost more"},
        {"price": [{"usd": "0.02", "per": "image"}], "price_list": "partners", "reason": "a year's deal"},
        {"price": [dear, {"usd": "0.025", "per": "image"}], "valid_from": in_a_week, "reason": "winter sale"},
    ]
    for version in versions:
        admin.post("/admin/api/prices", json={"model": "painter", **version}).raise_for_status()
    terms = {"price_list": "partners", "discount_ppm": 50_000}
    admin.post(f"/admin/api/accounts/{account_id}/pricing", json=terms).raise_for_status()


def _paths(picture: str, account_id: int, key_id: int) -> dict[str, str]:
    return {
        "overview": "/admin?range=7d",
        "models": "/admin/models?range=30d",
        "price": "/admin/models/painter?" + urlencode(DRAFT),
        "prices": "/admin/prices/lists",
        "terms": f"/admin/accounts/{account_id}/pricing?discount=12.5",
        "accounts": "/admin/accounts",
        "account": f"/admin/accounts/{account_id}",
        "keys": "/admin/keys",
        "key": f"/admin/keys/{key_id}",
        "requests": "/admin/requests?range=7d",
        "request": f"/admin/requests/{picture}",
        "queues": "/admin/queues",
        "books": "/admin/books",
        "webhooks": "/admin/webhooks",
        "audit": "/admin/audit",
        "playground": "/admin/playground?model=painter",
        "usage": "/usage?range=7d",
        "usage-requests": "/usage/requests",
        "statements": "/usage/statements",
    }
