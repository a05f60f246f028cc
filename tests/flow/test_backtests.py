"""Backtests of a running system: by the admin API and the command, and through the death of the settler."""

import json
import os
import signal
import time
from typing import Any

import httpx
import pytest

from tests.flow.locks import locked
from tests.flow.test_limits import CHAT, PATH, PRICE_NANOS
from tests.system import System

CHEAPER = {"usd": "0.0004", "per": "request"}
CHEAPER_NANOS = 400_000
WITHIN_S = 180.0


@pytest.fixture(scope="module")
def caller(system: System) -> tuple[int, str]:
    """Answer an account that called three times, and the name of its key."""
    account, secret = system.account("rated-again", "1")
    with system.client(secret) as client:
        for _ in range(3):
            assert client.post(PATH, json=CHAT).status_code == 200
        name: str = client.get("/v1/key").json()["name"]
    return account, name


def begun(admin: httpx.Client, **draft: Any) -> dict[str, Any]:
    answer = admin.post("/admin/api/backtests", json={"days": 7, **draft})
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    return told


def awaited(admin: httpx.Client, backtest_id: str, *states: str) -> dict[str, Any]:
    end = time.monotonic() + WITHIN_S
    while True:
        told: dict[str, Any] = admin.get(f"/admin/api/backtests/{backtest_id}").json()
        if told["state"] in states:
            return told
        assert time.monotonic() < end, told
        time.sleep(0.05)


def mine(result: dict[str, Any], account: int) -> dict[str, Any]:
    (key,) = (each for each in result["by_key"] if each["account_id"] == account)
    (whole,) = (each for each in result["by_account"] if each["id"] == account)
    assert whole["sums"] == key["sums"]
    sums: dict[str, Any] = key["sums"]
    return sums


def test_the_api_and_the_command_find_the_same(system: System, caller: tuple[int, str]) -> None:
    account, name = caller
    with system.admin() as admin:
        done = awaited(admin, begun(admin, model="fake-chat", price=[CHEAPER])["id"], "done", "failed")
        typed = system.run(*("prices", "backtest", "fake-chat", "{usd: 0.0004, per: request}", "--days", "7", "--json"))
        assert typed.returncode == 0, typed.stderr
        listed = admin.get("/admin/api/backtests").json()["backtests"]
    sums = mine(done["result"], account)
    assert (sums["requests"], sums["before_nanos"], sums["after_nanos"]) == (3, 3 * PRICE_NANOS, 3 * CHEAPER_NANOS)
    by_command = json.loads(typed.stdout)
    assert mine(by_command["result"], account) == sums
    assert by_command["digest"] == done["digest"]
    assert {done["id"], by_command["id"]} <= {each["id"] for each in listed}
    shown = system.run("prices", "backtest", "fake-chat", "{usd: 0.0004, per: request}", "--days", "7").stdout
    assert name in shown
    assert "$0.0012" in shown


def test_what_would_pass_its_hold_counts_with_its_hold(system: System, caller: tuple[int, str]) -> None:
    with system.admin() as admin:
        dearer = {"usd": "0.005", "per": "request"}
        done = awaited(admin, begun(admin, model="fake-chat", price=[dearer])["id"], "done", "failed")
    sums = mine(done["result"], caller[0])
    assert (sums["after_nanos"], sums["capped"], sums["capped_nanos"]) == (3 * PRICE_NANOS, 3, 12 * PRICE_NANOS)


def test_drafts_that_make_no_sense_are_refused_and_nobody_learns_of_others(system: System) -> None:
    with system.admin() as admin:
        for body, status in (
            ({}, 400),
            ({"model": "fake-chat", "account_id": 1}, 400),
            ({"model": "nobody", "price": [CHEAPER]}, 404),
            ({"model": "fake-chat", "price": [CHEAPER], "days": 8}, 400),
            ({"account_id": 10**12, "discount_ppm": 5}, 404),
            ({"model": "fake-chat", "price": [{"usd": "1", "per": "fortnight"}]}, 422),
        ):
            answer = admin.post("/admin/api/backtests", json=body)
            assert answer.status_code == status, (body, answer.text)
        assert admin.get("/admin/api/backtests/bt_nothing").status_code == 404
        assert admin.post(f"/admin/api/backtests/bt_{'0' * 32}/cancel").status_code == 404
    with system.client() as client:
        assert client.get("/admin/api/backtests").status_code == 401


def test_one_that_is_cancelled_amid_its_work_stays_so(system: System) -> None:
    with system.admin() as admin:
        with locked(system, "usage"):
            backtest_id = begun(admin, model="fake-chat", price=[CHEAPER])["id"]
            awaited(admin, backtest_id, "running")
            assert admin.post(f"/admin/api/backtests/{backtest_id}/cancel").json()["state"] == "cancelled"
        told = awaited(admin, begun(admin, model="fake-stream", price=[CHEAPER])["id"], "done", "failed")
        assert told["state"] == "done"
        assert (awaited(admin, backtest_id, "cancelled", "done")["result"]) is None


def test_one_whose_settler_is_killed_is_finished_by_the_next(system: System, caller: tuple[int, str]) -> None:
    with system.admin() as admin:
        with locked(system, "usage"):
            backtest_id = begun(admin, model="fake-chat", price=[CHEAPER])["id"]
            awaited(admin, backtest_id, "running")
            for pid in system.pids("settler"):
                os.kill(pid, signal.SIGKILL)
        done = awaited(admin, backtest_id, "done", "failed")
    assert mine(done["result"], caller[0])["after_nanos"] == 3 * CHEAPER_NANOS
