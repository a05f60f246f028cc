"""Workflows on a running system: one price, one output, whatever dies meanwhile, and nothing left of their steps."""

import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
import redis

from tests.flow.leases import kill_workers, lapsing, leased
from tests.flow.test_media_calls import IMAGE
from tests.flow.test_requests import finished
from tests.system import System, running_system

CATALOG = Path(__file__).with_name("workflows.yaml")
TEXT = "x" * 40
"""Two seconds, at 50 ms a character."""
HEAD_NANOS = 100_000_000
THOUGHTS_NANOS = 2_000_000
POOLS = ("steps", "slow", "flows")
TRIES = 5
"""Of what a machine that stands still may spoil: the long step of a request takes three seconds."""


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system of fake engines and workflows, for the tests of this module."""
    folder = tmp_path_factory.mktemp("flows")
    folder.chmod(0o711)
    with running_system(folder / "data", "--catalog", str(CATALOG), engines="fake,workflow") as system:
        system.wait_ready("voice", "film", "writer", "slow-writer", "talking-head", "two-thoughts")
        yield system


@pytest.fixture
def caller(flows: System) -> Iterator[tuple[httpx.Client, int]]:
    account, key = flows.account(f"flows-{time.time_ns()}", "10")
    with flows.client(key) as client:
        yield client, account


def until(true: Callable[[], bool], within_s: float = 60.0) -> float:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < within_s, "that did not come true"
        time.sleep(0.02)
    return time.monotonic() - began


def think(client: httpx.Client, text: str = "hello") -> str:
    body = {"model": "two-thoughts", "input": {"messages": [{"role": "user", "content": text}]}}
    told = client.post("/v1/requests", json=body)
    assert told.status_code == 202, told.text
    request_id: str = told.json()["id"]
    return request_id


def jobs(system: System, pool: str) -> int:
    """Count what waits or runs in a pool."""
    with redis.Redis.from_url(system.redis_url) as client:
        return int(client.hlen(f"fg:{{{pool}}}:jobs"))  # type: ignore[arg-type]


def files(system: System) -> list[str]:
    return sorted(path.name for path in (system.data / "blobs").rglob("req_*") if path.is_file())


def begun(system: System, client: httpx.Client) -> str:
    """Think, to where the long step runs; anew, where that was over unseen."""
    for _ in range(TRIES):
        request_id = think(client)
        while client.get(f"/v1/requests/{request_id}").json()["status"] in ("queued", "running"):
            if leased(system, "slow"):
                return request_id
            time.sleep(0.02)
    raise AssertionError("the long step was never seen")


def killed_amid_the_long_step(system: System, client: httpx.Client, pool: str) -> str:
    """Kill the workers of a pool while the long step of a request runs; answers that request."""
    for _ in range(TRIES):
        request_id = begun(system, client)
        kill_workers(system, pool)
        if jobs(system, "slow"):
            return request_id
        finished(client, request_id)
    raise AssertionError("the long step was always over before")


def thoughts_nanos(client: httpx.Client) -> int:
    """Say what all that its account has asked for costs, where each is charged once."""
    asked: int = client.get("/v1/usage").json()["total"]["requests"]
    return asked * THOUGHTS_NANOS


def settled_books(system: System, account: int) -> dict[str, Any]:
    """Hold the books and the queues against each other once all is over; answers the account."""
    for pool in POOLS:
        until(lambda pool=pool: jobs(system, pool) == 0)  # type: ignore[misc]
    done = system.run("books", "verify", "--json")
    assert done.returncode == 0, done.stdout
    shown = system.balance(account)
    assert shown["held_nanos"] == 0
    return shown


def test_a_talking_head_is_a_film_with_its_sound_at_one_price(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    body = {"model": "talking-head", "input": {"image": IMAGE, "text": TEXT, "fps": 10}}
    shown = finished(client, client.post("/v1/requests", json=body).json()["id"])
    assert shown["status"] == "succeeded", shown
    assert shown["charge_nanos"] == HEAD_NANOS
    assert [(one["step"], one["model"], one["outcome"]) for one in shown["attempts"]] == [  # type: ignore[attr-defined]
        ("speech", "voice", "succeeded"),
        ("film", "film", "succeeded"),
    ]
    assert [one["cost_nanos"] for one in shown["attempts"]] == [1_000_000, 20_000_000]  # type: ignore[attr-defined]
    told: Any = shown["output"]
    video = httpx.get(told["media"][0]["url"], timeout=60)
    with av.open(io.BytesIO(video.content)) as film:
        lengths = [float(stream.duration * stream.time_base) for stream in film.streams]  # type: ignore[operator]
        assert [stream.type for stream in film.streams] == ["video", "audio"]
    assert lengths == pytest.approx([2.0, 2.0], abs=0.11)
    until(lambda: len([name for name in files(flows) if not name.startswith(str(shown["id"]))]) == 0)
    assert settled_books(flows, account)["spent_nanos"] == HEAD_NANOS


def test_the_phases_of_a_workflow_add_up_to_its_wall_clock(flows: System, caller: tuple[httpx.Client, int]) -> None:
    """What is left is admission and settlement, which a busy machine may delay: the best of a few counts."""
    client, account = caller
    shares = [0.0]
    while max(shares) < 0.95 and len(shares) <= 2 * TRIES:
        body = {"model": "talking-head", "input": {"image": IMAGE, "text": TEXT, "fps": 10}}
        shown: Any = finished(client, client.post("/v1/requests", json=body).json()["id"])
        shares.append(sum(shown["phases_ms"].values()) / shown["total_ms"])
    assert 0.95 <= max(shares) <= 1.01, shares
    assert settled_books(flows, account)["spent_nanos"] == (len(shares) - 1) * HEAD_NANOS


def test_a_caller_who_waits_gets_the_whole_answer(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    answer = client.post(
        "/v1/chat/completions", json={"model": "two-thoughts", "messages": [{"role": "user", "content": "hello"}]}
    )
    assert answer.status_code == 200
    assert len(answer.json()["choices"][0]["message"]["content"].split()) == 150
    assert answer.headers["x-faregate-charge-nanos"] == str(THOUGHTS_NANOS)
    assert settled_books(flows, account)["spent_nanos"] == THOUGHTS_NANOS


def test_a_caller_who_streams_gets_it_too(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    body = {"model": "two-thoughts", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: {")]
    text = "".join(
        choice["delta"].get("content") or "" for line in lines for choice in json.loads(line).get("choices", ())
    )
    assert len(text.split()) == 150
    assert settled_books(flows, account)["spent_nanos"] == THOUGHTS_NANOS


@pytest.mark.parametrize(("switch", "words"), [("fail", "failed: The fake engine was told to fail."), ("refuse", ": ")])
def test_a_failed_step_costs_nothing(flows: System, caller: tuple[httpx.Client, int], switch: str, words: str) -> None:
    client, account = caller
    shown: Any = finished(client, think(client, f"fake:{switch}"))
    assert shown["status"] == "failed"
    assert f"Step first (writer){' ' if switch == 'fail' else ''}{words}" in shown["error"]["message"]
    assert [(one["step"], one["outcome"]) for one in shown["attempts"]] == [("first", "failed")]
    assert settled_books(flows, account)["spent_nanos"] == 0


def test_cancelling_stops_the_running_step_within_a_second(flows: System, caller: tuple[httpx.Client, int]) -> None:
    """In one try of a few, on a machine that stands still now and then."""
    client, account = caller
    took_s: list[float] = []
    while not took_s or (took_s[-1] >= 1.5 and len(took_s) < TRIES):
        request_id = begun(flows, client)
        assert client.post(f"/v1/requests/{request_id}/cancel").status_code in (200, 202)
        took_s.append(until(lambda: jobs(flows, "slow") == 0))
        shown: Any = finished(client, request_id)
        if shown["status"] == "succeeded":
            took_s[-1] = 1.5  # it was over before it could be stopped
    assert took_s[-1] < 1.5, took_s
    assert (shown["status"], shown["charge_nanos"]) == ("cancelled", THOUGHTS_NANOS)
    assert [(one["step"], one["outcome"]) for one in shown["attempts"]] == [
        ("first", "succeeded"),
        ("second", "cancelled"),
    ]
    assert settled_books(flows, account)["spent_nanos"] == thoughts_nanos(client)


def test_a_killed_workflow_worker_leaves_one_charge_and_one_output(
    flows: System, caller: tuple[httpx.Client, int]
) -> None:
    client, account = caller
    request_id = killed_amid_the_long_step(flows, client, "flows")
    shown: Any = finished(client, request_id)
    assert (shown["status"], shown["charge_nanos"]) == ("succeeded", THOUGHTS_NANOS)
    assert shown["lost_attempts"] == 1
    assert [(one["step"], one["attempt"]) for one in shown["attempts"]] == [("first", 1), ("second", 1)]
    assert settled_books(flows, account)["spent_nanos"] == thoughts_nanos(client)


def test_a_killed_worker_of_a_step_is_survived(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    request_id = killed_amid_the_long_step(flows, client, "slow")
    shown: Any = finished(client, request_id)
    assert (shown["status"], shown["charge_nanos"], shown["lost_attempts"]) == ("succeeded", THOUGHTS_NANOS, 0)
    assert [(one["step"], one["attempt"]) for one in shown["attempts"]] == [("first", 1), ("second", 2)]
    assert settled_books(flows, account)["spent_nanos"] == thoughts_nanos(client)


def test_a_step_that_kills_its_workers_fails_the_request(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    with lapsing(flows, "steps"):
        shown: Any = finished(client, think(client, "fake:crash"), within_s=120)
    assert shown["status"] == "failed"
    assert "Step first (writer) failed: The workers that took this request were lost" in shown["error"]["message"]
    assert settled_books(flows, account)["spent_nanos"] == 0


def test_an_emptied_redis_loses_no_workflow(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    request_id = begun(flows, client)
    with redis.Redis.from_url(flows.redis_url) as emptied:
        emptied.flushall()
    shown: Any = finished(client, request_id)
    assert (shown["status"], shown["charge_nanos"]) == ("succeeded", THOUGHTS_NANOS)
    assert settled_books(flows, account)["spent_nanos"] == thoughts_nanos(client)


def test_a_head_with_nothing_to_say_is_refused_before_a_hold(flows: System, caller: tuple[httpx.Client, int]) -> None:
    client, account = caller
    answer = client.post("/v1/requests", json={"model": "talking-head", "input": {"image": IMAGE}})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "text")
    assert settled_books(flows, account)["spent_nanos"] == 0
