"""Webhooks and phases of a whole running system, through HTTP, with the settler killed in the middle."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.system import System, running_system
from tests.webhooks.receiver import Post, Receiver, verify

WITHIN_S = 120.0
TRIES = 5
"""Of what a machine that stands still for a moment may spoil."""


@pytest.fixture(scope="module")
def told_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run a system that may call this machine."""
    folder = tmp_path_factory.mktemp("told")
    folder.chmod(0o711)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAREGATE_FETCH_ALLOW", "127.0.0.1")
        patch.setenv("FAREGATE_WEBHOOK_TIMEOUT_S", "2")
        with running_system(folder / "data") as system:
            system.wait_ready("fake-chat", "fake-slow")
            yield system


def submit(client: httpx.Client, says: str = "hello", model: str = "fake-chat", **more: Any) -> httpx.Response:
    given = {"messages": [{"role": "user", "content": says}]}
    return client.post("/v1/requests", json={"model": model, "input": given} | more)


def ended(client: httpx.Client, request_id: str) -> dict[str, Any]:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        shown: dict[str, Any] = client.get(f"/v1/requests/{request_id}").json()
        if shown["finished_at"]:
            return shown
        time.sleep(0.05)
    raise AssertionError(f"{request_id} did not end")


async def told_of(receiver: Receiver, request_id: str) -> dict[str, Post]:
    """Wait for the end of a request; answers what the receiver was told of it, each under its type, the first time."""
    told: dict[str, Post] = {}
    async with asyncio.timeout(WITHIN_S):
        while "request.completed" not in told:
            await asyncio.sleep(0.02)
            for post in receiver.posts:
                if post.told["data"]["id"] == request_id:
                    told.setdefault(post.told["type"], post)
    return told


async def test_a_caller_is_told_of_the_start_and_the_end_of_its_request(told_system: System) -> None:
    """Nobody is told of a start that was over before it was seen: then another request is made."""
    async with Receiver() as receiver:
        with told_system.client() as client:
            secret = client.get("/v1/webhooks/secret").json()["secret"]
            for _ in range(TRIES):
                answer = await asyncio.to_thread(
                    submit,
                    client,
                    "fake:sleep=2",
                    "fake-slow",
                    webhook=receiver.url,
                    webhook_events=["started", "completed"],
                )
                assert answer.status_code == 202, answer.text
                request_id = answer.json()["id"]
                told = await told_of(receiver, request_id)
                if "request.started" in told:
                    break
            started, completed = told["request.started"], told["request.completed"]
            shown = client.get(f"/v1/requests/{request_id}").json()
            log = client.get("/v1/webhooks/deliveries", params={"request": request_id}).json()["data"]
    assert started.told["data"]["status"] == "running"
    assert completed.told["data"] == shown
    assert verify(secret, started)
    assert verify(secret, completed)
    assert [one["id"] for one in log] == [completed.id, started.id]
    assert {one["state"] for one in log} <= {"delivered", "pending"}  # the receiver may be quicker than the log


async def test_no_event_is_lost_when_the_settler_is_killed_while_it_tells(told_system: System) -> None:
    """At least once, under one id: the receiver hangs, the settler dies, the next one tells it again."""
    async with Receiver("slow", 200) as receiver:
        with told_system.client() as client:
            ids = [submit(client, webhook=receiver.url).json()["id"] for _ in range(10)]
            await receiver.until(1, WITHIN_S)
            [settler] = told_system.pids("settler")
            os.kill(settler, signal.SIGKILL)
            wanted = {f"evt_{request_id[4:]}-completed" for request_id in ids}
            async with asyncio.timeout(WITHIN_S):
                while set(receiver.ids) != wanted or receiver.ids.count(receiver.ids[0]) < 2:
                    await asyncio.sleep(0.1)
            assert [ended(client, request_id)["status"] for request_id in ids] == ["succeeded"] * 10
    verified = await asyncio.to_thread(told_system.run, "books", "verify")
    assert verified.returncode == 0, verified.stdout


def test_addresses_inside_and_what_is_none_are_refused_and_leave_no_hold(told_system: System) -> None:
    account, key = told_system.account(f"prober-{time.time_ns()}", "1")
    with told_system.client(key) as client:
        for url in ("http://169.254.169.254/", "http://[::1]/", "ftp://a.example/", "http://u:p@a.example/", "x"):
            answer = submit(client, webhook=url)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "url_not_allowed"), url
            assert answer.json()["error"]["param"] == "webhook"
        assert submit(client, webhook="http://127.0.0.1:9/", webhook_events=["finished"]).status_code == 400
        twice = b'{"model":"fake-chat","model":"fake-slow","input":{}}'
        answer = client.post("/v1/requests", content=twice)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "duplicate_key")
    assert told_system.balance(account)["available_nanos"] == 10**9


async def test_another_accounts_webhooks_look_like_none(told_system: System) -> None:
    _, stranger = told_system.account(f"stranger-{time.time_ns()}", "1")
    async with Receiver() as receiver:
        with told_system.client() as client:
            request_id = submit(client, webhook=receiver.url).json()["id"]
            post = (await receiver.until(1, WITHIN_S))[0]
            again = client.post(f"/v1/webhooks/deliveries/{post.id}/redeliver")
            assert again.status_code == 202
            assert (await receiver.until(2, WITHIN_S))[1].id == post.id
            mine = client.get("/v1/webhooks/secret").json()["secret"]
    with told_system.client(stranger) as client:
        assert client.get("/v1/webhooks/deliveries", params={"request": request_id}).json()["data"] == []
        refused = client.post(f"/v1/webhooks/deliveries/{post.id}/redeliver")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        assert client.get("/v1/webhooks/secret").json()["secret"] != mine
    listed = await asyncio.to_thread(told_system.run, "webhooks", "list", "--request", request_id)
    assert post.id in listed.stdout
    redelivered = await asyncio.to_thread(told_system.run, "webhooks", "redeliver", post.id)
    assert redelivered.returncode == 0, redelivered.stderr


def test_the_phases_of_a_request_add_up_to_what_a_clock_shows(told_system: System) -> None:
    """Within 5%, in the best of five: what is missing is the way from the worker to the charge."""
    with told_system.client() as client:
        shares = []
        for _ in range(TRIES):
            shown = ended(client, submit(client, "fake:sleep=4", "fake-slow").json()["id"])
            assert list(shown["phases_ms"]) == [
                "queue", "load", "preprocess", "transfer", "forward", "postprocess", "store",
            ]  # fmt: skip
            shares.append(sum(shown["phases_ms"].values()) / shown["total_ms"])
            if abs(1 - shares[-1]) <= 0.05:
                break
    assert abs(1 - shares[-1]) <= 0.05, shares
    [attempt] = shown["attempts"]
    assert attempt["phases_ms"] == shown["phases_ms"]
    assert (attempt["model"], attempt["attempt"], attempt["outcome"]) == ("fake-slow", 1, "succeeded")
    assert (attempt["cost_nanos"], shown["lost_attempts"]) == (shown["charge_nanos"], 0)
