"""`faregate up`: what it starts, keeps running, ends, and goes on with."""

import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.system import System, running_system

CHAT = {"model": "fake-chat", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One system for the tests that leave it running."""
    with running_system(tmp_path_factory.mktemp("up") / "data") as running:
        running.wait_ready("fake-chat")
        yield running


def until(condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "that did not come true"
        time.sleep(0.05)


def family(system: System) -> set[int]:
    """Number every process below `faregate up`, Postgres's own children too."""
    return {process.pid for process in psutil.Process(system.process.pid).children(recursive=True)}


def living(pids: set[int]) -> set[int]:
    alive = set()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                alive.add(pid)
    return alive


def waiting_callers(system: System) -> int:
    lines = httpx.get(f"{system.base_url}/metrics").text.splitlines()
    return int(next(float(line.split()[1]) for line in lines if line.startswith("faregate_waiting_callers ")))


def test_connection_json_names_the_system_its_keys_and_its_processes(system: System) -> None:
    told = system.connection()
    assert set(told) == {"base_url", "admin_key", "api_key", "database_url", "redis_url", "blob_url", "processes"}
    assert {each["role"] for each in told["processes"]} == {"postgres", "valkey", "gateway", "settler", "worker"}
    assert all(psutil.pid_exists(each["pid"]) for each in told["processes"])


def test_connection_json_can_be_read_by_its_owner_only(system: System) -> None:
    assert stat.S_IMODE((system.data / "connection.json").stat().st_mode) == 0o600


def test_postgres_and_valkey_listen_on_this_machine_only_and_want_a_password(system: System) -> None:
    for role in ("postgres", "valkey"):
        (pid,) = system.pids(role)
        listening = [each for each in psutil.Process(pid).net_connections() if each.status == psutil.CONN_LISTEN]
        assert {each.laddr.ip for each in listening} == {"127.0.0.1"}
    told = system.connection()
    assert all(":" in url.split("//")[1].split("@")[0] for url in (told["database_url"], told["redis_url"]))


def test_postgres_commits_durably(system: System) -> None:
    (pid,) = system.pids("postgres")
    command = psutil.Process(pid).cmdline()
    assert not [word for word in command if word.startswith(("fsync", "synchronous_commit", "full_page_writes"))]


def call(system: System) -> httpx.Response:
    with system.client() as client:
        return client.post("/v1/chat/completions", json=CHAT)


@pytest.mark.parametrize("role", ["worker", "settler", "valkey", "postgres"])
def test_what_is_killed_is_started_again_and_calls_go_on(system: System, role: str) -> None:
    before = system.pids(role)
    os.kill(before[0], signal.SIGKILL)
    until(lambda: before[0] not in system.pids(role) and len(system.pids(role)) == len(before))
    until(lambda: call(system).status_code == 200)


def test_a_call_made_while_a_gateway_is_started_again_waits_and_is_answered(system: System) -> None:
    """The supervisor holds the socket, so that nobody is refused."""
    (before,) = system.pids("gateway")
    os.kill(before, signal.SIGKILL)
    answer = call(system)
    assert answer.status_code == 200, answer.text
    assert system.pids("gateway") != [before]


def test_a_start_after_kill_9_goes_on_at_once_and_a_drain_ends_all(tmp_path: Path) -> None:
    """Nothing outlives a killed stack; the next has the same keys and money, and leaves nothing when told to stop."""
    data = tmp_path / "data"
    with contextlib.suppress(ProcessLookupError), running_system(data) as first:
        assert call(first).status_code == 200
        told, children = first.connection(), family(first)
        first.process.kill()
        first.process.wait()
        with running_system(data) as second:
            assert living(children) == set()
            again = second.connection()
            assert (again["api_key"], again["admin_key"]) == (told["api_key"], told["admin_key"])
            assert second.balance(1)["available_nanos"] == 10_000_000_000 - 1_000_000
            children = family(second)
            second.process.send_signal(signal.SIGTERM)
            assert second.process.wait(60) == 0
            assert living(children) == set()
            assert not (data / "connection.json").exists()


def test_a_call_that_runs_when_the_drain_begins_is_answered(tmp_path: Path) -> None:
    """The call takes a second; SIGINT comes in its middle. One that ended before it was seen is made once more."""
    with running_system(tmp_path / "data") as system, ThreadPoolExecutor(1) as apart:
        system.wait_ready("fake-slow")
        with system.client() as client:
            slow: Future[httpx.Response] | None = None

            def under_way() -> bool:
                nonlocal slow
                if slow is None or slow.done():
                    slow = apart.submit(client.post, "/v1/chat/completions", json={**CHAT, "model": "fake-slow"})
                return waiting_callers(system) == 1

            until(under_way)
            assert slow is not None
            system.process.send_signal(signal.SIGINT)
            answer = slow.result(60)
        assert answer.status_code == 200, answer.text
        assert system.process.wait(60) == 0


def test_servers_of_ones_own_are_used_where_they_are_named(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """A second signal ends all that is left at once."""
    named = ("--database-url", database_url, "--redis-url", redis_url)
    with running_system(tmp_path / "data", *named) as system:
        assert system.pids("postgres") == system.pids("valkey") == []
        assert system.connection()["database_url"] == database_url
        assert call(system).status_code == 200
        children = family(system)
        for _ in range(2):
            system.process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert system.process.wait(60) == 0
        until(lambda: living(children) == set())
