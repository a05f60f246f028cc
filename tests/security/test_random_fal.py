"""Whatever is sent to the fal family, the answer is never a fault of ours, is in fal's shape, and leaves no hold."""

import random
from typing import Any

import httpx
import msgspec
import pytest

from tests.security.test_random_bodies import RAW, SCALARS, faults, settled
from tests.system import System, post_all

BODIES = 2_000
PATHS = ("/fal/fake-chat", "/fal/faregate/fake-chat", "/fal/run/fake-chat", "/fal/run/fake-chat/stream", "/fal/a/b")
VALID: dict[str, Any] = {
    "prompt": "hello",
    "system_prompt": "be brief",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 5,
    "temperature": 0.5,
    "image_size": "square_hd",
    "image_urls": ["data:,"],
    "num_images": 2,
    "duration": "5s",
    "sync_mode": False,
    "task": "translate",
    "chunk_level": "word",
    "width": 64,
    "height": 64,
}


def mutated(draw: random.Random) -> bytes:
    """Make a payload that is nearly right, or not at all."""
    if draw.random() < 0.05:
        return draw.choice(RAW)
    body = {name: VALID[name] for name in ("prompt", "max_tokens") if draw.random() < 0.9}
    for _ in range(draw.randrange(4)):
        name = draw.choice([*VALID, "extra", "api_base", "__proto__", "model "])
        body[name] = draw.choice([VALID.get(name), *SCALARS, [draw.choice(SCALARS)], {"width": draw.choice(SCALARS)}])
    return msgspec.json.encode(body)


async def test_random_payloads_meet_no_fault_and_leave_no_hold(system: System) -> None:
    account, key = system.account("fal fuzz", "1000")
    draw = random.Random(20261121)
    calls = [(draw.choice(PATHS), mutated(draw)) for _ in range(BODIES)]
    statuses = await post_all(system, key, calls)
    assert await faults(system, key, calls, statuses) == []
    assert {200, 404, 422} <= set(statuses)
    await settled(system, account)


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path",
    [
        "",
        "x",
        "a/b/requests",
        "a/b/requests/",
        "a/b/requests/x",
        "a/b/requests/req_0/status",
        "a/b/requests/" + "req_" + "0" * 32 + "/status/stream",
        "a/b/requests/" + "req_" + "0" * 32 + "/cancel",
        "a/b/requests/" + "req_" + "0" * 32 + "/nothing",
        "workflows/a/b/requests/%00/status",
        "../v1/models",
        "%2e%2e/x",
        "a/%00",
        "run",
        "run/stream",
        "storage/upload/file_0?account=-1&keep=x&expires=x&signature=x",
        "storage/upload/x",
        "1-0/files/file_" + "0" * 32,
        "é-%ff/files/file_x",
        ".well-known/jwks.json",
        "files/upload/multipart",
        "tokens/",
    ],
)
def test_paths_of_every_kind_are_answered_in_fals_shape(system: System, method: str, path: str) -> None:
    headers = {"authorization": f"Key {system.api_key}"}
    with httpx.Client(base_url=system.base_url, headers=headers, timeout=60.0) as client:
        answer = client.request(method, f"/fal/{path}", content=b"{}" if method == "POST" else None)
    assert answer.status_code < 500, answer.text
    if answer.status_code not in (200, 405):
        assert "detail" in answer.json()
        assert answer.headers["x-fal-error-type"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-fal-request-timeout", "-1"),
        ("x-fal-request-timeout", "nan"),
        ("x-fal-request-timeout", "1e99"),
        ("x-fal-queue-priority", "highest"),
        ("x-fal-object-lifecycle-preference", "{"),
        ("x-fal-object-lifecycle-preference", '{"expiration_duration_seconds": -1}'),
        ("x-fal-object-lifecycle-preference", '{"initial_acl": {"default": "forbid"}}'),
    ],
)
def test_headers_that_cannot_be_are_refused(system: System, name: str, value: str) -> None:
    path = "/fal/files/upload" if "lifecycle" in name else "/fal/fake-chat"
    headers = {"authorization": f"Key {system.api_key}", name: value}
    answer = httpx.post(f"{system.base_url}{path}", json={"prompt": "x"}, headers=headers, timeout=60.0)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["msg"]


@pytest.mark.parametrize("path", ["/fal/fake-chat", "/fal/run/fake-chat", "/fal/a/b", "/fal/files/upload"])
@pytest.mark.parametrize("secret", ["-", "wrong", "1-9999999999-" + "0" * 64, "' or 1=1 --"])
def test_strangers_learn_nothing(system: System, path: str, secret: str) -> None:
    headers = {"authorization": f"Key {secret}"}
    answer = httpx.post(f"{system.base_url}{path}", content=b"{", headers=headers, timeout=60.0)
    assert (answer.status_code, answer.json()["error_type"]) == (401, "invalid_api_key")


def test_a_payload_that_is_too_large_is_refused_before_it_is_read(system: System) -> None:
    headers = {"authorization": f"Key {system.api_key}"}
    large = b"x" * (11 * 1024 * 1024)
    answer = httpx.post(f"{system.base_url}/fal/fake-chat", content=large, headers=headers, timeout=60.0)
    assert answer.status_code == 413
