"""Budgets, rates and places over HTTP: exact under concurrency, told on every answer, and given back after a crash."""

import os
import re
import signal
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec

from tests.system import System, post_all

CHAT = {"model": "fake-chat", "messages": [{"role": "user", "content": "hello"}]}
PRICE_NANOS = 1_000_000
PATH = "/v1/chat/completions"
NEAR_S = 120
DURATION = re.compile(r"(\d+h)?(\d+m)?\d+(\.\d+)?s|\d+ms")


def away_from_midnight() -> None:
    """Wait where the day is nearly over: days, weeks and months end then, and what a budget has counted with them."""
    now = datetime.now(UTC)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    left_s = (midnight - now).total_seconds()
    if left_s < NEAR_S:
        time.sleep(left_s + 1)


def limited(system: System, name: str, **limits: Any) -> tuple[int, str]:
    """Make a key with limits; answers its id and its secret."""
    away_from_midnight()
    _, secret = system.account(name, "100")
    with system.client(secret) as client:
        key_id: int = client.get("/v1/key").json()["id"]
    with system.admin() as admin:
        answer = admin.post(f"/admin/api/keys/{key_id}/limits", json=limits)
        assert answer.status_code == 200, answer.text
    return key_id, secret


def budgets(holds: int, period: str = "day") -> dict[str, Any]:
    """Ask for a budget of so many calls."""
    return {"budgets": {period: holds * PRICE_NANOS}}


async def test_of_1000_calls_at_once_at_a_budget_for_100_exactly_100_run(system: System) -> None:
    key_id, secret = limited(system, "hundred", **budgets(100))
    statuses = await post_all(system, secret, [(PATH, msgspec.json.encode(CHAT))] * 1_000)
    assert (statuses.count(200), statuses.count(402)) == (100, 900)
    with system.client(secret) as client:
        shown = client.get("/v1/key").json()
        assert shown["limits"]["key"]["budgets"]["day"]["left_nanos"] == 0
        report = client.get("/v1/usage").json()
    assert report["total"]["requests"] == 100
    assert shown["id"] == key_id


async def test_rates_and_refusals_leave_nothing(system: System) -> None:
    _, secret = limited(system, "sixty", rates={"requests": {"most": 60}})
    statuses = await post_all(system, secret, [(PATH, msgspec.json.encode(CHAT))] * 200)
    assert (statuses.count(200), statuses.count(429)) == (60, 140)
    with system.client(secret) as client:
        refused = client.post(PATH, json=CHAT)
        shown = client.get("/v1/key").json()
    assert refused.status_code == 429
    error = refused.json()["error"]
    assert (error["code"], error["type"]) == ("rate_limit_exceeded", "rate_limit_error")
    assert 0 < int(refused.headers["retry-after"]) <= 61
    assert refused.headers["x-should-retry"] == "true"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert shown["used_nanos"] == 60 * PRICE_NANOS


def test_every_answer_tells_how_the_limits_stand(system: System) -> None:
    rates = {"requests": {"most": 100}, "tokens": {"most": 90_000}, "concurrent": {"most": 5}}
    _, secret = limited(system, "told", rates=rates, **budgets(10))
    chat = CHAT | {"model": "fake-stream", "stream": True}
    native = {"model": "fake-chat", "input": {"messages": CHAT["messages"]}}
    with system.client(secret) as client:
        answers = [
            client.post(PATH, json=CHAT),
            client.post(PATH, json=chat),
            client.post("/v1/requests", json=native),
            client.post("/v1/requests", json=native, headers={"prefer": "wait=20"}),
        ]
    for n, answer in enumerate(answers, 1):
        assert answer.status_code in (200, 202), answer.text
        told = answer.headers
        assert told["x-ratelimit-limit-requests"] == "100"
        assert told["x-ratelimit-remaining-requests"] == str(100 - n)
        assert DURATION.fullmatch(told["x-ratelimit-reset-requests"])
        assert told["x-ratelimit-limit-tokens"] == "90000"
        assert 0 < int(told["x-ratelimit-remaining-tokens"]) < 90_000
        assert DURATION.fullmatch(told["x-ratelimit-reset-tokens"])
        policy, state = told["ratelimit-policy"], told["ratelimit"]
        assert f'"key-budget-day";q={10 * PRICE_NANOS};qu="nanos";w=86400' in policy
        assert '"key-rate-concurrent";q=5;qu="concurrent-requests"' in policy
        assert re.search(r'"key-budget-day";r=\d+;t=\d+', state)


def test_who_has_no_limits_is_told_of_none(system: System) -> None:
    with system.client() as client:
        answer = client.post(PATH, json=CHAT)
    assert not [name for name in answer.headers if "ratelimit" in name]


def test_an_exhausted_budget_says_what_is_left_and_when_it_resets(system: System) -> None:
    _, secret = limited(system, "spent", **budgets(1, "week"))
    with system.client(secret) as client:
        assert client.post(PATH, json=CHAT).status_code == 200
        stream = client.post(PATH, json=CHAT | {"stream": True})
        native = client.post("/v1/requests", json={"model": "fake-chat", "input": {"messages": CHAT["messages"]}})
    for refused in (stream, native):
        assert refused.status_code == 402
        error = refused.json()["error"]
        assert error["code"] == "budget_exceeded"
        assert "0 US dollars are left of the key's budget of 0.001 for this week" in error["message"]
        assert 0 < int(refused.headers["retry-after"]) <= 7 * 86_400
        assert '"key-budget-week";r=0;t=' in refused.headers["ratelimit"]


def test_places_are_free_again_after_the_settler_was_killed(system: System) -> None:
    key_id, secret = limited(system, "places", rates={"concurrent": {"most": 2}})
    slow = {"model": "fake-slow", "input": {"messages": [{"role": "user", "content": "fake:sleep=50"}]}}
    with system.client(secret) as client, system.admin() as admin:
        taken = [client.post("/v1/requests", json=slow) for _ in range(2)]
        assert [answer.status_code for answer in taken] == [202, 202]
        refused = client.post(PATH, json=CHAT)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "concurrency_limit_exceeded")
        assert refused.headers["retry-after"] == "1"
        for pid in system.pids("settler"):
            os.kill(pid, signal.SIGKILL)
        for answer in taken:
            assert client.post(answer.json()["urls"]["cancel"]).status_code == 200
        end = time.monotonic() + 90
        while admin.get(f"/admin/api/keys/{key_id}/limits").json()["rates"]["concurrent"]["used"]:
            assert time.monotonic() < end, "places are still taken"
            time.sleep(0.2)
        assert client.post(PATH, json=CHAT).status_code == 200


def test_a_limit_holds_at_once_and_is_lifted_at_once(system: System) -> None:
    key_id, secret = limited(system, "quick", rates={"requests": {"most": 1}})
    with system.client(secret) as client, system.admin() as admin:
        assert [client.post(PATH, json=CHAT).status_code for _ in range(2)] == [200, 429]
        lifted = admin.post(f"/admin/api/keys/{key_id}/limits", json={"rates": {"requests": None}})
        assert lifted.json()["rates"] == {}
        assert client.post(PATH, json=CHAT).status_code == 200


def test_a_budget_of_the_account_is_shared_by_its_keys(system: System) -> None:
    away_from_midnight()
    account_id, first = system.account("shared", "100")
    with system.admin() as admin:
        second = admin.post("/admin/api/keys", json={"account_id": account_id}).json()["key"]
        asked = admin.post(f"/admin/api/accounts/{account_id}/limits", json=budgets(3, "month"))
        assert asked.status_code == 200
    statuses = []
    for secret in (first, second) * 3:
        with system.client(secret) as client:
            statuses.append(client.post(PATH, json=CHAT).status_code)
    assert statuses == [200, 200, 200, 402, 402, 402]


def test_commands_set_show_and_lift_limits_and_edit_keys(system: System) -> None:
    account_id, secret = system.account("typed", "100")
    with system.client(secret) as client:
        key_id = str(client.get("/v1/key").json()["id"])
        done = system.run("keys", "limit", key_id, "--day", "0.5", "--requests", "9", "--requests-burst", "3")
        assert done.returncode == 0, done.stderr
        assert "spent in a day" in done.stdout
        assert "9 (burst 3)" in done.stdout
        assert system.run("accounts", "limit", str(account_id), "--tokens", "1000").returncode == 0
        shown = client.get("/v1/key").json()
        assert shown["limits"]["key"]["budgets"]["day"]["limit_nanos"] == 500_000_000
        assert shown["limits"]["account"]["rates"]["tokens"]["most"] == 1_000
        assert system.run("keys", "limit", key_id, "--day", "none", "--requests", "none").returncode == 0
        assert system.run("keys", "edit", key_id, "--name", "new", "--model", "fake-*", "--budget", "1").returncode == 0
        shown = client.get("/v1/key").json()
    assert shown["limits"]["key"] == {"budgets": {}, "rates": {}}
    assert (shown["name"], shown["models"], shown["budget_nanos"]) == ("new", ["fake-*"], 10**9)
    assert system.run("keys", "limit", key_id, "--requests-burst", "3").returncode == 2
    refused = system.run("accounts", "alert-url", str(account_id), "ftp://nowhere")
    assert (refused.returncode, "not allowed" in refused.stderr) == (1, True)
    assert system.run("accounts", "alert-url", str(account_id), "https://receiver.example/hook").returncode == 0
    assert system.balance(account_id)["alert_url"] == "https://receiver.example/hook"


def test_strange_limits_are_refused_by_name(system: System) -> None:
    with system.admin() as admin:
        for body in (
            {"budgets": {"year": 5}},
            {"budgets": {"day": -1}},
            {"budgets": {"day": 1.5}},
            {"rates": {"requests": {"most": 0}}},
            {"rates": {"requests": {"most": 5, "burst": 6}}},
            {"rates": {"requests": 5}},
            {"budget": 5},
        ):
            answer = admin.post("/admin/api/keys/1/limits", json=body)
            assert answer.status_code == 400, (body, answer.text)
    with httpx.Client(base_url=system.base_url, timeout=60.0) as stranger:
        assert stranger.get("/v1/key").status_code == 401
