"""Whatever is sent, the answer is never a fault of ours, and no hold is left behind."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core import NOT_SET

from tests.system import System, post_all

BODIES = 10_000

HOT = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/audio/speech", "/v1/requests")

VALID: dict[str, Any] = {
    "model": "fake-chat",
    "messages": [{"role": "user", "content": "hello"}],
    "prompt": "hello",
    "input": {"messages": [{"role": "user", "content": "hello"}]},
    "max_tokens": 5,
    "temperature": 0.5,
    "n": 1,
    "stop": ["a"],
    "stream": False,
    "voice": "alloy",
    "metadata": {"a": "b"},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "max_price": "1",
    "deadline_s": 5,
}

SCALARS: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 2**64, 1e308, -0.0, "", "\x00", "\ud7ff", "a" * 3000, "=1+1", "../..",
    "%00", [], {}, [[]],
    {"": ""},
)  # fmt: skip

RAW = (
    b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b'{"model":NaN}', b'{"a":1e400}', b"[" * 10_000,
    b'{"model":' * 5_000,
    b'{"n":' + b"9" * 1_000_000 + b"}",
)  # fmt: skip


def mutated(draw: random.Random) -> bytes:
    """Make a body that is nearly right, or not at all."""
    if draw.random() < 0.05:
        return draw.choice(RAW)
    names = [name for name in VALID if draw.random() < 0.5]
    body = {name: VALID[name] for name in names} | ({"model": "fake-chat"} if draw.random() < 0.8 else {})
    for _ in range(draw.randrange(3)):
        place = draw.choice([*names, "messages", draw.choice(["x", "api_base", "__proto__", "model "])])
        body[place] = draw.choice([*SCALARS, [draw.choice(SCALARS)], {"role": draw.choice(SCALARS), "content": "x"}])
    return msgspec.json.encode(body)


async def test_10_000_random_bodies_meet_no_fault_and_leave_no_hold(system: System) -> None:
    account, key = system.account("fuzz", "1000")
    draw = random.Random(20261121)
    calls = [(draw.choice(HOT), mutated(draw)) for _ in range(BODIES)]
    statuses = await post_all(system, key, calls)
    assert len(statuses) == BODIES
    assert await faults(system, key, calls, statuses) == []
    assert {200, 400} <= set(statuses)
    await settled(system, account)


async def faults(
    system: System, key: str, calls: Sequence[tuple[str, bytes]], statuses: Sequence[int]
) -> list[tuple[str, bytes, int]]:
    """Give the calls that met a fault, and its status.

    What is away for a moment, on a machine that stands still, comes as 503 to any call: those are made once more.
    """
    met = [(call, status) for call, status in zip(calls, statuses, strict=True) if status >= 500]
    again = [call for call, status in met if status == 503]
    told = [(call, status) for call, status in met if status != 503]
    told += zip(again, await post_all(system, key, again), strict=True)
    return [(path, body[:500], status) for (path, body), status in told if status >= 500]


async def settled(system: System, account: int) -> None:
    """Wait until what was accepted has ended, and see that nothing is held."""
    for _ in range(1200):
        shown = await asyncio.to_thread(system.balance, account)
        if shown["held_nanos"] == 0:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"still held: {shown}")


@pytest.fixture
def described(system: System) -> Any:
    return schemathesis.openapi.from_url(f"{system.base_url}/openapi/openapi.json")


@pytest.mark.parametrize("path", HOT)
def test_bodies_made_from_our_own_description_meet_no_fault(system: System, described: Any, path: str) -> None:
    operation = described[path]["POST"]

    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), name=st.sampled_from(["fake-chat", "fake-stream", None]))
    def check(case: Any, name: str | None) -> None:
        if case.media_type != "application/json":
            return  # forms have tests of their own
        body = case.body if case.body is not NOT_SET else None
        if isinstance(body, dict) and name is not None:
            body = body | {"model": name}
        with system.client() as client:
            answer = client.post(path, content=msgspec.json.encode(body), headers={"content-type": "application/json"})
        assert answer.status_code < 500, answer.text

    check()


@pytest.mark.parametrize("secret", ["x", "wrong", "fg_live_" + "A" * 43, "' or 1=1 --", "\xff"])
def test_keys_that_are_not_known_all_look_alike(system: System, secret: str) -> None:
    headers = {b"authorization": b"Bearer " + secret.encode("latin-1")}
    with httpx.Client(base_url=system.base_url, timeout=60.0) as client:
        answer = client.post(
            "/v1/chat/completions", json={"model": "fake-chat", "messages": VALID["messages"]}, headers=headers
        )
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert "=" not in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "%2e%2e/x", "a\x00b", "meta-llama/Llama-2-70b", "fake-chat/../x"])
def test_a_models_name_is_only_ever_looked_up(system: System, name: str) -> None:
    with system.client() as client:
        answer = client.post("/v1/chat/completions", json={"model": name, "messages": VALID["messages"]})
        assert answer.status_code == 404
        assert client.get(f"/v1/models/{name}".replace("\x00", "%00")).status_code in (400, 404)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(system: System) -> None:
    with system.client() as client:
        answer = client.post("/v1/chat/completions", content=b"x" * (11 * 1024 * 1024))
    assert answer.status_code == 413
