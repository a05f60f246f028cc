"""The dialects of other clouds under attack: every route of them, as the description of the API lists them."""

import io
import random
import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core import NOT_SET

from gateway.http.openapi import GMI_PATHS
from tests.media.samples import picture
from tests.security.test_random_bodies import RAW, SCALARS, faults, settled
from tests.security.test_random_media import MORE
from tests.system import System, post_all

BODIES = 2_000
TAGS = {"GMI": "error", "Replicate": "detail"}
"""The families, and where each has the words of an error."""
WITHOUT_KEY = ("/uploads/", "/me/auth-tokens", "/me/sessions")
"""Routes that ask for something else than a key."""
OF_REQUESTS = ("request_id", "prediction_id")

PREDICT = "/replicate/v1/predictions"
OF_MODEL = "/replicate/v1/models/faregate/fake-video/predictions"
POSTED = (*(f"{path}/requests" for path in GMI_PATHS), PREDICT, OF_MODEL)

VALID: dict[str, Any] = {
    "prompt": "a gate",
    "duration": "1",
    "durationSeconds": 1,
    "aspect_ratio": "16:9",
    "resolution": "720p",
    "size": "64x64",
    "width": 64,
    "height": 64,
    "num_outputs": 1,
    "guidance_scale": 5,
    "image": "data:image/png;base64,AAAA",
    "images": ["data:,"],
    "seed": "7",
    "fps": 8,
    "parameters": {"duration": 1},
    "output_format": "jpg",
}
ODD: tuple[Any, ...] = (
    *SCALARS,
    *MORE,
    "²:¹",
    "1:0",
    "9" * 5000,
    "9" * 5000 + ":1",
    "1e999",
    "nan",
    "٣",
    "1x",
    {"width": "a", "height": []},
)


class Route(msgspec.Struct, frozen=True):
    """A route of a dialect."""

    tag: str
    method: str
    path: str


@pytest.fixture(scope="module")
def described(media_system: System) -> dict[str, Any]:
    known: dict[str, Any] = httpx.get(f"{media_system.base_url}/openapi/openapi.json", timeout=60.0).json()
    return known


@pytest.fixture(scope="module")
def routes(described: dict[str, Any]) -> list[Route]:
    return [
        Route(tag, method.upper(), path)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        for tag in operation.get("tags", ())
        if tag in TAGS
    ]


@pytest.fixture
def client(media_system: System) -> Iterator[httpx.Client]:
    with media_system.client() as made:
        yield made


def filled(path: str, **given: str) -> str:
    for name, value in given.items():
        path = path.replace(f"{{{name}}}", value)
    return path.replace("{owner}", "faregate").replace("{name}", "fake-video").replace("{model_id}", "fake-video")


def test_all_routes_of_the_dialects_are_described(routes: list[Route]) -> None:
    assert {route.tag for route in routes} == TAGS.keys()
    assert len(routes) > 35


def test_no_route_serves_without_a_key(media_system: System, routes: list[Route]) -> None:
    """All wrong keys meet the same words, in the family's own shape."""
    said = set()
    for route in routes:
        if any(part in route.path for part in WITHOUT_KEY):
            continue
        path = filled(route.path, request_id="x", prediction_id="x", file_id="x", version="x")
        for secret in ("", "wrong", "fg_live_" + "A" * 43, "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.x"):
            headers = {"authorization": f"Bearer {secret}"} if secret else {}
            answer = httpx.request(route.method, media_system.base_url + path, headers=headers, timeout=60.0)
            field = "message" if "/me/" in path else TAGS[route.tag]
            assert (route.path, answer.status_code) == (route.path, 401)
            said.add(answer.json()[field])
    assert len(said) == 1


def test_what_another_account_owns_is_not_found(
    media_system: System, routes: list[Route], client: httpx.Client
) -> None:
    given = {"model": "fake-video", "input": {"prompt": "a gate"}}
    ours = client.post("/v1/requests", json=given, headers={"prefer": "wait=60"}).json()["id"]
    running = client.post("/v1/requests", json=given | {"model": "fake-video-slow"}).json()["id"]
    form = {"content": ("a.png", io.BytesIO(picture()), "image/png")}
    file_id = client.post("/replicate/v1/files", files=form).json()["id"]
    _, key = media_system.account(f"eve-{time.time_ns()}", "10")
    looked = 0
    with media_system.client(key) as eve:
        for route in routes:
            if not any(f"{{{name}}}" in route.path for name in (*OF_REQUESTS, "file_id")) or "/uploads/" in route.path:
                continue
            for request_id in (ours, running):
                ids = {"request_id": request_id, "prediction_id": request_id, "file_id": file_id}
                answer = eve.request(route.method, filled(route.path, **ids))
                assert (route.method, route.path, answer.status_code) == (route.method, route.path, 404)
                assert isinstance(answer.json()[TAGS[route.tag]], str)
                looked += 1
        for path in ("/api/v1/ie/requestqueue/apikey/requests", PREDICT, "/replicate/v1/files"):
            shown = eve.get(path).json()
            assert shown.get("requests", shown.get("results")) == []
        taken = {"input": {"prompt": "a", "image": f"{media_system.base_url}/replicate/v1/files/{file_id}"}}
        assert eve.post(OF_MODEL, json=taken).status_code == 404
    assert looked >= 20
    assert client.get(f"/v1/requests/{running}").json()["status"] in ("queued", "running", "succeeded")
    assert client.get(f"/replicate/v1/files/{file_id}").status_code == 200


def mutated(draw: random.Random, path: str) -> bytes:
    """Make a body that is right, or nearly so, or not at all."""
    if draw.random() < 0.05:
        return draw.choice(RAW)
    inside = {name: VALID[name] for name in VALID if draw.random() < (0.9 if name == "prompt" else 0.15)}
    for _ in range(draw.randrange(3)):
        value = draw.choice(ODD)
        inside[draw.choice([*VALID, "x", "api_base", "extra"])] = draw.choice([value, [value, value], {"a": value}])
    model = draw.choice(["fake-video", "fake-image", "fake-voice", "faregate/fake-video", "x"])
    body: dict[str, Any] = {"payload" if "requestqueue" in path or "apikey" in path else "input": inside}
    if path != OF_MODEL:
        body["model"] = model
    if draw.random() < 0.2:
        body[draw.choice(["webhook", "version", "priority", "max_price", "metadata", "x"])] = draw.choice(ODD)
    return msgspec.json.encode(body)


async def test_random_bodies_meet_no_fault_and_leave_no_hold(media_system: System) -> None:
    account, key = media_system.account(f"fuzz-dialects-{time.time_ns()}", "1000")
    draw = random.Random(20261124)
    paths = [draw.choice(POSTED) for _ in range(BODIES)]
    calls = [(path, mutated(draw, path)) for path in paths]
    statuses = await post_all(media_system, key, calls)
    assert await faults(media_system, key, calls, statuses) == []
    assert {200, 201, 400, 404} <= set(statuses)
    await settled(media_system, account)


@pytest.mark.parametrize("path", [*POSTED[:-1], "/api/v1/me/auth-tokens", "/api/v1/me/sessions",
                                  "/api/v1/ie/requestqueue/apikey/upload-url"])  # fmt: skip
def test_bodies_made_from_our_own_description_meet_no_fault(media_system: System, path: str) -> None:
    operation = schemathesis.openapi.from_url(f"{media_system.base_url}/openapi/openapi.json")[path]["POST"]

    @settings(max_examples=40, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        body = case.body if case.body is not NOT_SET else None
        with media_system.client() as client:
            answer = client.post(path, content=msgspec.json.encode(body), headers={"content-type": "application/json"})
        assert answer.status_code < 500, answer.text

    check()


@pytest.mark.parametrize("where", ["http://127.0.0.1/x", "http://127.1/x", "http://[::1]/x", "http://169.254.169.254/"])
def test_no_address_of_our_own_network_is_called(client: httpx.Client, where: str) -> None:
    asked = {"input": {"prompt": "a", "image": where}}
    answer = client.post(OF_MODEL, json=asked)
    assert (answer.status_code, answer.json()["code"]) == (400, "url_not_allowed")
    hooked = client.post(OF_MODEL, json={"input": {"prompt": "a"}, "webhook": where})
    assert (hooked.status_code, hooked.json()["code"]) == (400, "url_not_allowed")
    queued = client.post(POSTED[0], json={"model": "fake-video", "payload": asked["input"]})
    assert (queued.status_code, queued.json()["code"]) == (400, "url_not_allowed")


def test_nothing_is_asked_for_twice_with_one_idempotency_key(client: httpx.Client) -> None:
    key = {"idempotency-key": f"twice-{time.time_ns()}"}
    asked = {"input": {"prompt": "a gate"}}
    first = client.post(OF_MODEL, json=asked, headers=key | {"prefer": "wait=60"}).json()
    assert client.post(OF_MODEL, json=asked, headers=key).json()["id"] == first["id"]
    other = client.post(OF_MODEL, json={"input": {"prompt": "another"}}, headers=key)
    assert (other.status_code, other.json()["status"]) == (422, 422)
