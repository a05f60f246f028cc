"""The native family: waiting or not, reading again, events, cancelling, repeating."""

import asyncio
import json
import time

import asyncpg
import httpx
import pytest

from gateway.contract.ids import request_id_of
from tests.system import System, post_all

CHAT = {"messages": [{"role": "user", "content": "hello"}]}
LONG = {"messages": [{"role": "user", "content": "fake:sleep=50"}]}
"""To be cancelled: it ends on its own only long after everything that is looked at here."""
TRIES = 4
"""Of what a machine that stands still for a moment may spoil."""


def submit(client: httpx.Client, model: str = "fake-chat", **more: object) -> httpx.Response:
    headers = more.pop("headers", None)
    return client.post("/v1/requests", json={"model": model, "input": CHAT} | more, headers=headers)  # type: ignore[arg-type]


def finished(client: httpx.Client, request_id: str, within_s: float = 60.0) -> dict[str, object]:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        shown: dict[str, object] = client.get(f"/v1/requests/{request_id}").json()
        if shown["status"] not in ("queued", "running"):
            return shown
        time.sleep(0.05)
    raise AssertionError(f"{request_id} did not end within {within_s} s")


def events(client: httpx.Client, request_id: str, after: str = "") -> list[tuple[str, str, dict[str, object]]]:
    headers = {"last-event-id": after} if after else {}
    told: list[tuple[str, str, dict[str, object]]] = []
    entry = name = ""
    with client.stream("GET", f"/v1/requests/{request_id}/events", headers=headers) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            field, _, value = line.partition(": ")
            if field == "id":
                entry = value
            elif field == "event":
                name = value
            elif field == "data":
                told.append((entry, name, json.loads(value)))
    return told


def test_an_asynchronous_request_is_accepted_and_can_be_read_when_it_has_ended(system: System) -> None:
    with system.client() as client:
        accepted = submit(client, metadata={"order": "17"})
        assert accepted.status_code == 202
        told = accepted.json()
        assert told["status"] == "queued"
        assert told["hold_nanos"] == 1_000_000
        assert accepted.headers["location"] == told["urls"]["get"]
        shown = finished(client, told["id"])
        assert shown["status"] == "succeeded"
        assert shown["charge_nanos"] == 1_000_000
        assert shown["output"]["choices"][0]["text"]  # type: ignore[index]
        assert shown["metadata"] == {"order": "17"}


def test_waiting_long_enough_gives_the_answer_at_once(system: System) -> None:
    with system.client() as client:
        answer = submit(client, headers={"prefer": "wait=60"})
        assert answer.status_code == 200
        assert answer.json()["status"] == "succeeded"
        assert answer.json()["charge_nanos"] == 1_000_000


def test_waiting_not_long_enough_gives_the_id_and_the_request_goes_on(system: System) -> None:
    with system.client() as client:
        answer = submit(client, "fake-stream", headers={"prefer": "wait=0"})
        assert answer.status_code == 202
        assert finished(client, answer.json()["id"])["status"] == "succeeded"
        slow = submit(client, "fake-slow", headers={"prefer": "wait=1"}, input=LONG)
        assert slow.status_code == 202
        shown = client.get(slow.json()["urls"]["get"]).json()
        assert shown["status"] in ("queued", "running")
        client.post(slow.json()["urls"]["cancel"])
        finished(client, shown["id"])


def test_events_can_be_resumed_where_they_broke_off(system: System) -> None:
    with system.client() as client:
        request_id = submit(client, "fake-stream").json()["id"]
        whole = events(client, request_id)
        assert whole[-1][1] == "done"
        assert whole[-1][2]["status"] == "succeeded"
        deltas = [event for event in whole if event[1] == "delta"]
        assert len(deltas) >= 100
        resumed = events(client, request_id, after=deltas[49][0])
        assert [event for event in resumed if event[1] == "delta"] == deltas[50:]


def test_a_waiting_request_can_be_cancelled_for_nothing(system: System) -> None:
    account, key = system.account("canceller", "1")
    with system.client(key) as client:
        taken = [submit(client, "fake-slow", input=LONG).json()["id"] for _ in range(4)]  # all places
        ids = [*taken, *(submit(client, "fake-slow").json()["id"] for _ in range(8))]
        cancelled = client.post(f"/v1/requests/{ids[-1]}/cancel")
        assert cancelled.status_code == 200
        shown = finished(client, ids[-1])
        assert shown["status"] == "cancelled"
        assert shown["reason"] == "cancelled_by_caller"
        assert shown["charge_nanos"] == 0
        for request_id in taken:
            client.post(f"/v1/requests/{request_id}/cancel")
        for request_id in ids[:-1]:
            finished(client, request_id)
    assert system.balance(account)["held_nanos"] == 0


def test_a_repeat_with_the_same_key_is_the_same_request(system: System) -> None:
    headers = {"idempotency-key": f"order-{time.time_ns()}"}
    body = {"model": "fake-chat"} | CHAT
    with system.client() as client:
        first = client.post("/v1/chat/completions", json=body, headers=headers)
        again = client.post("/v1/chat/completions", json=body, headers=headers)
        assert first.status_code == again.status_code == 200
        assert first.json()["id"] == again.json()["id"]
        assert first.json()["choices"] == again.json()["choices"]
        other = client.post("/v1/chat/completions", json=body | {"seed": 1}, headers=headers)
        assert other.status_code == 422
    _, stranger = system.account(f"other-{time.time_ns()}", "1")
    with system.client(stranger) as client:
        independent = client.post("/v1/chat/completions", json=body, headers=headers)
        assert independent.status_code == 200
        assert independent.json()["id"] != first.json()["id"]


def test_another_accounts_request_looks_like_none(system: System) -> None:
    with system.client() as client:
        request_id = submit(client).json()["id"]
    _, stranger = system.account(f"stranger-{time.time_ns()}", "1")
    with system.client(stranger) as client:
        for method, path in (("GET", ""), ("GET", "/events"), ("GET", "/output"), ("POST", "/cancel")):
            answer = client.request(method, f"/v1/requests/{request_id}{path}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not_found"


def left_after(client: httpx.Client, chunks_read: int) -> tuple[dict[str, object], float]:
    """Leave a stream after so many chunks; answers its request at its end, and after how long that was there."""
    body = {"model": "fake-stream", "stream": True} | CHAT
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        request_id = answer.headers["x-request-id"]
        chunks = 0
        for line in answer.iter_lines():
            chunks += line.startswith("data: {")
            if chunks >= chunks_read:
                break
    left = time.monotonic()
    return finished(client, request_id), time.monotonic() - left


@pytest.mark.parametrize("share", [0.5])
def test_a_client_that_leaves_pays_for_what_was_produced(system: System, share: float) -> None:
    """A stream lasts for a second: where it stood still meanwhile, the next one is left."""
    account, key = system.account(f"leaver-{time.time_ns()}", "1")
    with system.client(key) as client:
        for _ in range(TRIES):
            shown, took_s = left_after(client, int(100 * share))
            if shown["status"] == "cancelled" and took_s < 2.0:
                break
    assert took_s < 2.0
    assert shown["status"] == "cancelled"
    assert shown["reason"] == "client_gone"
    produced = shown["usage"]["output_tokens"]  # type: ignore[index]
    assert 100 * share - 1 <= produced < 100  # the first chunk holds the role
    assert shown["charge_nanos"] > 0  # type: ignore[operator]
    assert system.balance(account)["held_nanos"] == 0


async def open_ids(system: System, account_id: int) -> list[str]:
    connection = await asyncpg.connect(system.database_url)
    rows = await connection.fetch("select id from open_request where account_id = $1", account_id)
    await connection.close()
    return [request_id_of(row["id"]) for row in rows]


def started_after_s(client: httpx.Client) -> float:
    """Submit a slow request; answers after how long it no longer waited."""
    began = time.monotonic()
    request_id = submit(client, "fake-slow").json()["id"]
    while client.get(f"/v1/requests/{request_id}").json()["status"] == "queued":
        assert time.monotonic() - began < 60
        time.sleep(0.02)
    return time.monotonic() - began


def test_one_accounts_flood_does_not_delay_anothers_single_request(system: System) -> None:
    """5,000 requests of one account wait; another's single one starts within two service times (1 s each)."""
    flood_account, flood = system.account(f"flood-{time.time_ns()}", "10")
    _, single = system.account(f"single-{time.time_ns()}", "1")
    body = json.dumps({"model": "fake-slow", "input": CHAT}).encode()
    statuses = asyncio.run(post_all(system, flood, [("/v1/requests", body)] * 5_000))
    assert statuses == [202] * 5_000
    with system.client(single) as client:
        assert any(started_after_s(client) < 2.5 for _ in range(TRIES))
    waiting = asyncio.run(open_ids(system, flood_account))
    assert waiting, "the flood is over"
    cancels = [(f"/v1/requests/{request_id}/cancel", b"") for request_id in waiting]
    assert set(asyncio.run(post_all(system, flood, cancels))) == {200}
    end = time.monotonic() + 90
    while system.balance(flood_account)["held_nanos"]:
        assert time.monotonic() < end
        time.sleep(0.2)
