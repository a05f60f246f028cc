"""Keys that are bound to addresses and models pass no family's door to anything else."""

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.system import System

MESSAGES = [{"role": "user", "content": "hello"}]
CALLS = {
    "openai": ("POST", "/v1/chat/completions", {"model": "fake-chat", "messages": MESSAGES}),
    "native": ("POST", "/v1/requests", {"model": "fake-chat", "input": {"messages": MESSAGES}}),
    "quote": ("POST", "/v1/quotes", {"model": "fake-chat", "input": {"messages": MESSAGES}}),
    "fal": ("POST", "/fal/fake-chat", {"messages": MESSAGES}),
    "fal run": ("POST", "/fal/run/fake-chat", {"messages": MESSAGES}),
    "replicate": ("POST", "/replicate/v1/predictions", {"version": "fake-chat", "input": {"messages": MESSAGES}}),
    "gmi": (
        "POST",
        "/api/v1/ie/requestqueue/apikey/requests",
        {"model": "fake-chat", "payload": {"messages": MESSAGES}},
    ),
}
READS = (
    "/v1/models",
    "/v1/key",
    "/v1/usage",
    "/v1/requests/req_00000000000000000000000000000000",
    "/v1/webhooks/secret",
    "/v1/videos",
    "/replicate/v1/models",
    "/api/v1/ie/requestqueue/apikey/models",
)
SPOOFS: tuple[dict[str, str], ...] = (
    {},
    {"x-forwarded-for": "203.0.113.5"},
    {"x-forwarded-for": "203.0.113.5, 127.0.0.1"},
    {"x-real-ip": "203.0.113.5", "forwarded": "for=203.0.113.5", "x-forwarded-host": "203.0.113.5"},
)


def bound(system: System, name: str, **bounds: object) -> str:
    """Make a key that is bound; answers its secret."""
    account_id, _ = system.account(name, "1")
    with system.admin() as admin:
        made = admin.post("/admin/api/keys", json={"account_id": account_id, **bounds})
        assert made.status_code == 201, made.text
        secret: str = made.json()["key"]
        return secret


@pytest.fixture(scope="module")
def elsewhere(system: System) -> Iterator[httpx.Client]:
    """Answer a client whose key may be used from another network only."""
    with system.client(bound(system, "elsewhere", addresses=["203.0.113.0/24"])) as client:
        yield client


@pytest.mark.parametrize("family", CALLS)
@pytest.mark.parametrize("spoof", SPOOFS, ids=str)
def test_a_key_is_refused_from_other_addresses_in_every_family(
    elsewhere: httpx.Client, family: str, spoof: dict[str, str]
) -> None:
    method, path, body = CALLS[family]
    answer = elsewhere.request(method, path, json=body, headers=spoof)
    assert answer.status_code == 403, answer.text
    assert "address" in answer.text


@pytest.mark.parametrize("path", READS)
def test_nothing_is_read_with_it_either(elsewhere: httpx.Client, path: str) -> None:
    answer = elsewhere.get(path)
    assert answer.status_code == 403, answer.text


def test_from_its_own_address_it_works(system: System) -> None:
    with system.client(bound(system, "here", addresses=["127.0.0.0/8", "::1"])) as client:
        method, path, body = CALLS["openai"]
        assert client.request(method, path, json=body).status_code == 200


@pytest.mark.parametrize("family", CALLS)
def test_a_key_calls_only_its_models_in_every_family(system: System, family: str) -> None:
    secret = bound(system, f"narrow {family}", models=["fake-stream", "team/*"])
    method, path, body = CALLS[family]
    with system.client(secret) as client:
        answer = client.request(method, path, json=body)
        assert answer.status_code == 403, answer.text
        assert "model" in answer.text
        assert client.get("/v1/usage").json()["total"]["requests"] == 0
        shown = client.get("/v1/key").json()
        assert shown["used_nanos"] == 0


ONE_MODEL = {
    "native and OpenAI": "/v1/models/{}",
    "replicate": "/replicate/v1/models/faregate/{}",
    "its versions": "/replicate/v1/models/faregate/{}/versions",
    "as a deployment": "/replicate/v1/deployments/faregate/{}",
    "gmi": "/api/v1/ie/requestqueue/apikey/models/{}",
    "gmi, short": "/api/v1/apikey/models/{}",
    "gmi, signed in": "/api/v1/ie/requestqueue/models/{}",
    "requests of one": "/api/v1/ie/requestqueue/apikey/requests?model_id={}",
}
LISTS = ("/v1/models", "/replicate/v1/models", "/replicate/v1/deployments", "/api/v1/ie/requestqueue/apikey/models",
         "/api/v1/apikey/models", "/api/v1/ie/requestqueue/models")  # fmt: skip


@pytest.fixture(scope="module")
def narrow(system: System) -> Iterator[httpx.Client]:
    """Answer a client whose key may call one model."""
    with system.client(bound(system, "narrow", models=["fake-stream"])) as client:
        yield client


@pytest.mark.parametrize("path", ONE_MODEL.values(), ids=ONE_MODEL)
def test_a_model_of_others_is_read_as_one_that_is_not_there(narrow: httpx.Client, path: str) -> None:
    """To the letter, but for the name and for the id of the call."""
    assert narrow.get(path.format("fake-stream")).status_code == 200
    others, none = narrow.get(path.format("fake-chat")), narrow.get(path.format("fake-none"))
    assert (others.status_code, none.status_code) == (404, 404)
    ids = re.compile(r"req_[0-9a-f]{32}")
    assert ids.sub("", others.text) == ids.sub("", none.text)
    assert "fake-chat" not in others.text


def test_a_version_of_a_model_of_others_is_not_there_either(system: System, narrow: httpx.Client) -> None:
    with system.client() as client:
        mine = client.get("/replicate/v1/models/faregate/fake-chat/versions").json()["results"][0]["id"]
        path = f"/replicate/v1/models/faregate/fake-chat/versions/{mine}"
        assert client.get(path).status_code == 200
    assert narrow.get(path).status_code == 404


@pytest.mark.parametrize("path", LISTS)
def test_no_list_names_a_model_of_others(narrow: httpx.Client, path: str) -> None:
    answer = narrow.get(path)
    assert answer.status_code == 200
    assert "fake-stream" in answer.text
    assert "fake-chat" not in answer.text


def test_only_allowed_models_are_listed_and_chosen(system: System) -> None:
    with system.client(bound(system, "chooser", models=["fake-stream"])) as client:
        assert [row["id"] for row in client.get("/v1/models").json()["data"]] == ["fake-stream"]
        assert client.get("/v1/models/fake-chat").status_code == 404
        assert client.get("/api/v1/ie/requestqueue/apikey/models").json()["model_ids"] == ["fake-stream"]
        assert [row["name"] for row in client.get("/replicate/v1/models").json()["results"]] == ["fake-stream"]
        auto = client.post("/v1/chat/completions", json={"model": "auto", "messages": MESSAGES})
        assert auto.status_code == 200, auto.text
        assert auto.headers["x-faregate-model"] == "fake-stream"
        both = {"model": "fake-chat", "models": ["fake-stream"], "messages": MESSAGES}
        assert client.post("/v1/chat/completions", json=both).headers["x-faregate-model"] == "fake-stream"
        neither = {"model": "fake-chat", "models": ["fake-slow"], "messages": MESSAGES}
        refused = client.post("/v1/chat/completions", json=neither)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")


@pytest.mark.parametrize(
    "bounds",
    [
        {"models": []},
        {"models": ["a b"]},
        {"models": ["x" * 201]},
        {"addresses": []},
        {"addresses": ["10.0.0.1/8"]},
        {"addresses": ["nowhere"]},
        {"addresses": ["127.1"]},
    ],
)
def test_bounds_that_make_no_sense_are_refused(system: System, bounds: dict[str, object]) -> None:
    with system.admin() as admin:
        assert admin.post("/admin/api/keys", json={"account_id": 1, **bounds}).status_code == 400


def test_a_key_bound_to_addresses_opens_its_pages_from_there_only(system: System) -> None:
    secret = bound(system, "elsewhere-pages", addresses=["203.0.113.0/24"])
    with httpx.Client(base_url=system.base_url, timeout=60.0) as visitor:
        form = visitor.get("/usage/sign-in").text
        token = re.search(r'name="csrf_token" value="([^"]+)"', form)
        assert token is not None
        sent = {"csrf_token": token[1], "key": secret, "next": "/usage"}
        answer = visitor.post("/usage/sign-in", data=sent, headers={"origin": system.base_url})
        assert answer.status_code == 403
        assert "may not be used from your address" in answer.text
        assert visitor.get("/usage", follow_redirects=False).status_code in (302, 303, 307)
