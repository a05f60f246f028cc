"""When a request that waits will start and finish, and deadlines that cannot be met."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.system import System

PLACES = 4
"""Of the worker of `slow-chat`, each taken for a second."""
QUEUED = 32
CHAT = {"messages": [{"role": "user", "content": "hello"}]}
WITHIN = 1.5
"""The factor by which an estimate may be wrong."""


@pytest.fixture
def client(routing: System) -> Iterator[httpx.Client]:
    with routing.client() as made:
        yield made


def submit(client: httpx.Client, **more: Any) -> httpx.Response:
    return client.post("/v1/requests", json={"model": "slow-chat", "input": CHAT} | more)


def ended(client: httpx.Client, request_id: str, within_s: float = 60.0) -> dict[str, Any]:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        shown: dict[str, Any] = client.get(f"/v1/requests/{request_id}").json()
        if shown["finished_at"] is not None:
            return shown
        time.sleep(0.2)
    raise AssertionError(f"{request_id} did not end within {within_s} s")


def eta_known(client: httpx.Client) -> None:
    """Let the pool have a history, and the gateway know it."""
    first = [submit(client).json()["id"] for _ in range(PLACES)]
    for each in first:
        ended(client, each)
    end = time.monotonic() + 20
    while submit(client).json()["eta"] is None:
        assert time.monotonic() < end, "no history after 20 s"
        time.sleep(0.5)


def duration_s(shown: dict[str, Any]) -> float:
    begun, over = (datetime.fromisoformat(shown[name]) for name in ("created_at", "finished_at"))
    return (over - begun).total_seconds()


def test_the_estimate_of_the_finish_is_what_then_happens(client: httpx.Client) -> None:
    eta_known(client)
    told = [submit(client).json() for _ in range(QUEUED)]
    waiting = [one for one in told if one["position"]]
    assert waiting, "nothing had to wait"
    status = client.get(f"/v1/requests/{told[-1]['id']}").json()
    last = told[-1]
    assert last["eta"]["start"]["p50"] < last["eta"]["finish"]["p50"] <= last["eta"]["finish"]["p90"]
    assert status["eta"]["finish"]["p50"] <= last["eta"]["finish"]["p50"] + 1.0
    for one in (told[len(told) // 2], last):
        happened = duration_s(ended(client, one["id"]))
        guessed = one["eta"]["finish"]["p50"]
        assert happened / WITHIN <= guessed <= happened * WITHIN, (guessed, happened)


def test_a_deadline_that_cannot_be_met_is_refused_before_any_hold(routing: System, client: httpx.Client) -> None:
    eta_known(client)
    for _ in range(QUEUED):
        submit(client)
    refused = submit(client, deadline_s=2)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (422, "deadline_unreachable", "deadline_s"), error
    assert "about" in error["message"]
    assert submit(client, deadline_s=300).status_code == 202
    # The queue is fair: one request of another account is not behind the many.
    account, key = routing.account("in a hurry", "1")
    with routing.client(key) as other:
        accepted = submit(other, deadline_s=8)
        assert accepted.status_code == 202, accepted.text
        assert ended(other, accepted.json()["id"])["status"] == "succeeded"
    assert routing.balance(account)["held_nanos"] == 0


def test_a_model_without_history_has_no_estimate_and_no_refusal(client: httpx.Client) -> None:
    accepted = client.post(
        "/v1/requests",
        json={"model": "gone-picture", "input": {"prompt": "a fox"}, "deadline_s": 1},
    )
    assert accepted.status_code == 202
    assert accepted.json()["eta"] is None
