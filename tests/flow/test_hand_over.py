"""A request that fails in one pool answers from the next: one charge, at the price of the model that answered."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from gateway.queues.keys import keys_of
from tests.flow.leases import kill_workers, lapsing
from tests.flow.test_requests import events, finished
from tests.system import System, running_system

CATALOG = Path(__file__).parent / "hand_over.yaml"
MODELS = ("two-ways", "breaks", "breaks-too", "works", "one-at-a-time", "two-ways-picture", "seldom-asked")
FAILS_ONCE = "fake:fail=1"
TRIES = 5
"""Of what a machine that stands still may spoil: a request that is to be met while it runs, and may have ended."""


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Answer a whole running system in which two pools serve the same models."""
    folder = tmp_path_factory.mktemp("hand-over")
    folder.chmod(0o711)
    with running_system(folder / "data", "--catalog", str(CATALOG), engines="fake") as running:
        running.wait_ready(*MODELS)
        yield running


@pytest.fixture
def account(pools: System) -> tuple[int, str]:
    return pools.account(f"hand-over-{time.time_ns()}", "1")


@pytest.fixture
def client(pools: System, account: tuple[int, str]) -> Iterator[httpx.Client]:
    with pools.client(account[1]) as made:
        yield made


def said(words: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": words}]}


def submit(client: httpx.Client, words: str, model: str = "two-ways", **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/requests", json={"model": model, "input": said(words)} | more)
    assert answer.status_code == 202, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def until(client: httpx.Client, request_id: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        shown: dict[str, Any] = client.get(f"/v1/requests/{request_id}").json()
        if true(shown):
            return shown
        time.sleep(0.02)
    raise AssertionError(f"it did not come to that: {shown}")


def in_second(client: httpx.Client, words: str, model: str = "two-ways") -> str:
    """Submit what runs for a while in the second pool; answers its id while it runs there."""
    for _ in range(TRIES):
        request_id: str = submit(client, words, model)["id"]
        shown = until(client, request_id, lambda shown: shown["finished_at"] or shown["attempt"] == 2)
        if shown["status"] == "running":
            return request_id
    raise AssertionError("it was always over before it was seen")


def holds(system: System, pool: str, request_id: str) -> bool:
    """Say whether a request waits or runs in a pool."""
    with redis.Redis.from_url(system.redis_url) as connection:
        return bool(connection.hexists(keys_of(pool).jobs, request_id))


def asked(client: httpx.Client) -> int:
    """Count what the account has asked for."""
    number: int = client.get("/v1/usage").json()["total"]["requests"]
    return number


def tried(client: httpx.Client, request_id: str) -> list[tuple[int, str]]:
    """Give the attempts of a request, each with how it ended."""
    shown = client.get(f"/v1/requests/{request_id}").json()
    return [(each["attempt"], each["reason"]) for each in shown["attempts"]]


def test_a_caller_who_waits_gets_the_answer_of_the_next_pool(
    pools: System, client: httpx.Client, account: tuple[int, str]
) -> None:
    answer = client.post("/v1/chat/completions", json={"model": "two-ways"} | said(FAILS_ONCE))
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["charge_nanos"] == 1_000_000
    assert tried(client, answer.json()["id"]) == [(1, "engine_error"), (2, "done")]
    assert pools.balance(account[0])["spent_nanos"] == 1_000_000
    assert pools.balance(account[0])["held_nanos"] == 0


def test_a_stream_that_has_not_begun_comes_from_the_next_pool(client: httpx.Client) -> None:
    body = {"model": "two-ways", "stream": True, "stream_options": {"include_usage": True}} | said(FAILS_ONCE)
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    words = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
    assert len([word for word in words if word]) == 20
    assert chunks[-1]["usage"]["charge_nanos"] == 1_000_000


def test_an_asynchronous_request_goes_on_and_its_events_follow_it(client: httpx.Client) -> None:
    accepted = submit(client, "fake:fail=1 fake:sleep=0.5")
    told = events(client, accepted["id"])
    assert [name for _, name, _ in told if name == "started"] == ["started", "started"]
    shown = finished(client, accepted["id"])
    assert (shown["status"], shown["attempt"], shown["charge_nanos"]) == ("succeeded", 2, 1_000_000)
    first, second = shown["attempts"]  # type: ignore[misc]
    assert (first["pool"], first["outcome"], first["cost_nanos"]) == ("first", "failed", None)
    assert second["outcome"] == "succeeded"
    resumed = events(client, accepted["id"], told[-2][0])
    assert [(name, data["id"]) for _, name, data in resumed] == [("done", accepted["id"])]


def test_the_price_is_that_of_the_model_that_answered(
    pools: System, client: httpx.Client, account: tuple[int, str]
) -> None:
    """Over three models, two of them in one pool: the highest price is held, the last one's is charged."""
    accepted = submit(client, "hello", "breaks", models=["breaks-too", "works"])
    assert accepted["hold_nanos"] == 5_000_000
    shown = finished(client, accepted["id"])
    assert (shown["status"], shown["model"], shown["charge_nanos"]) == ("succeeded", "works", 2_000_000)
    assert [each["model"] for each in shown["attempts"]] == ["breaks", "breaks-too", "works"]  # type: ignore[attr-defined]
    assert [each["attempt"] for each in shown["attempts"]] == [1, 2, 3]  # type: ignore[attr-defined]
    assert pools.balance(account[0])["spent_nanos"] == 2_000_000


def test_where_every_way_fails_the_last_failure_is_told_and_nothing_is_charged(
    pools: System, client: httpx.Client, account: tuple[int, str]
) -> None:
    answer = client.post("/v1/chat/completions", json={"model": "two-ways"} | said("fake:fail"))
    assert answer.status_code >= 500, answer.text
    assert answer.json()["error"]["code"] == "engine_error"
    assert pools.balance(account[0])["spent_nanos"] == 0
    assert pools.balance(account[0])["held_nanos"] == 0


def test_a_refused_input_is_not_tried_elsewhere(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json={"model": "two-ways"} | said("fake:refuse"))
    assert answer.status_code == 400, answer.text
    assert tried(client, answer.json()["error"]["request_id"]) == [(1, "refused_by_engine")]


def test_a_picture_of_the_second_pool_is_the_only_file_that_is_kept(pools: System, client: httpx.Client) -> None:
    body = {"model": "two-ways-picture", "input": {"prompt": FAILS_ONCE}}
    shown = finished(client, client.post("/v1/requests", json=body).json()["id"])
    assert (shown["status"], shown["charge_nanos"]) == ("succeeded", 40_000_000)
    files = sorted(path.name for path in (pools.data / "blobs").rglob(f"{shown['id']}-*"))
    assert {name.split("-")[1] for name in files} == {"2"}


def test_a_request_that_runs_in_the_second_pool_is_shown_there_and_can_be_cancelled(client: httpx.Client) -> None:
    for _ in range(TRIES):
        request_id = in_second(client, "fake:fail=1 fake:sleep=1")
        assert client.post(f"/v1/requests/{request_id}/cancel").status_code == 200
        shown = finished(client, request_id)
        if shown["status"] == "cancelled":  # else it was over before
            break
    assert (shown["status"], shown["reason"]) == ("cancelled", "cancelled_by_caller")
    assert shown["charge_nanos"] == 1_000_000, "a request that had begun costs its price"
    assert tried(client, request_id) == [(1, "engine_error"), (2, "cancelled_by_caller")]


def test_a_request_that_waits_in_the_second_pool_has_its_place_there_and_can_be_cancelled(
    pools: System, client: httpx.Client
) -> None:
    busy = submit(client, "fake:sleep=50", "one-at-a-time", only=["second"])
    until(client, busy["id"], lambda shown: shown["status"] == "running")
    waiting = submit(client, FAILS_ONCE, "one-at-a-time")
    until(client, waiting["id"], lambda _: holds(pools, "second", waiting["id"]))
    shown = client.get(f"/v1/requests/{waiting['id']}").json()
    assert (shown["status"], shown["position"]) == ("queued", 0)
    assert client.post(shown["urls"]["cancel"]).json()["status"] in ("queued", "cancelled")
    shown = finished(client, waiting["id"])
    assert (shown["status"], shown["charge_nanos"]) == ("cancelled", 0)
    assert tried(client, waiting["id"])[0] == (1, "engine_error")
    assert client.get(f"/v1/requests/{busy['id']}").json()["status"] == "running"
    client.post(f"/v1/requests/{busy['id']}/cancel")
    assert finished(client, busy["id"])["status"] == "cancelled"


def test_a_request_that_kills_the_workers_of_one_pool_is_answered_by_the_next(
    pools: System, client: httpx.Client
) -> None:
    """As often as that pool allows; then its record says so, and the second pool answers."""
    with lapsing(pools, "first"), lapsing(pools, "second"):
        answer = client.post("/v1/chat/completions", json={"model": "two-ways"} | said("fake:crash=2"), timeout=120)
    assert answer.status_code == 200, answer.text
    assert tried(client, answer.json()["id"]) == [(2, "worker_lost"), (3, "done")]
    pools.wait_ready(*MODELS)


def test_a_killed_worker_hands_nothing_over_twice(pools: System, client: httpx.Client) -> None:
    """Killed while it runs in the second pool, the request is taken again there, and not in the first."""
    for _ in range(TRIES):
        request_id = in_second(client, "fake:fail=1 fake:sleep=1", "seldom-asked")
        kill_workers(pools, "second")
        if holds(pools, "second", request_id):  # else it was over before
            break
    shown = finished(client, request_id)
    assert (shown["status"], shown["attempt"], shown["charge_nanos"]) == ("succeeded", 3, 1_000_000)
    assert [each["pool"] for each in shown["attempts"] if "pool" in each] == ["first"]  # type: ignore[attr-defined]
    pools.wait_ready(*MODELS)


def test_a_redis_that_is_emptied_after_a_hand_over_loses_nothing(
    pools: System, client: httpx.Client, account: tuple[int, str]
) -> None:
    """For one who waits and for one who does not: their ways are known to their gateway and to Postgres."""
    request_id = in_second(client, "fake:fail=1 fake:sleep=1.5")
    with redis.Redis.from_url(pools.redis_url) as connection:
        connection.flushall()
    shown = finished(client, request_id)
    assert (shown["status"], shown["charge_nanos"]) == ("succeeded", 1_000_000)
    assert pools.balance(account[0])["spent_nanos"] == asked(client) * 1_000_000
    assert [each["reason"] for each in shown["attempts"]] == ["engine_error", "done"]  # type: ignore[attr-defined]


def test_nothing_is_left_in_redis_and_the_books_hold(pools: System) -> None:
    end = time.monotonic() + 60
    with redis.Redis.from_url(pools.redis_url) as connection:
        while left := [
            key
            for pool in ("first", "second")
            for what in ("jobs", "moved", "cancels", "attempts", "excused", "leases", "queue")
            if connection.exists(key := f"fg:{{{pool}}}:{what}")
        ]:
            assert time.monotonic() < end, left
            time.sleep(0.1)
    verified = pools.run("books", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
