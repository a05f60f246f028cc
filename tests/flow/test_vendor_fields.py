"""Fields of one model alone, through the front door: beside the fields of a task, in every way of calling."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.flow.test_media_calls import IMAGE, picture
from tests.system import System, running_system

CATALOG = Path(__file__).with_name("vendor.yaml")
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system of fake engines whose models may also be served elsewhere."""
    folder = tmp_path_factory.mktemp("vendor")
    with running_system(folder / "data", "--catalog", str(CATALOG), engines="fake") as running:
        running.wait_ready("talk", "draw", "plain")
        yield running


@pytest.fixture(scope="module")
def caller(system: System) -> Iterator[tuple[httpx.Client, int]]:
    account, key = system.account(f"vendor-{time.time_ns()}", "100")
    with system.client(key) as client:
        yield client, account


def refused(answer: httpx.Response, param: str, code: str) -> None:
    assert (answer.status_code, answer.json()["error"]["param"], answer.json()["error"]["code"]) == (400, param, code)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"model": "talk", "messages": HELLO}),
    ("/v1/completions", {"model": "talk", "prompt": "hello"}),
    ("/v1/requests", {"model": "talk", "input": {"messages": HELLO}}),
]


def beside(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Put fields where the others of an input are."""
    return body | {"input": body["input"] | fields} if "input" in body else body | fields


@pytest.mark.parametrize(("path", "body"), CALLS)
def test_what_is_declared_is_taken_and_what_is_not_is_refused_before_a_hold(
    caller: tuple[httpx.Client, int], system: System, path: str, body: dict[str, Any]
) -> None:
    client, account = caller
    answer = client.post(path, json=beside(body, mood="kind", depth=2), headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    before = system.balance(account)
    for answer in (
        client.post(path, json=beside(body, mood="kind", wings=2)),
        client.post(path, json=beside(body, extra={"wings": 2})),
        client.post(path, json=beside(body | {"model": "plain"} if "messages" in str(body) else body, wings=2)),
    ):
        refused(answer, answer.json()["error"]["param"], "unknown_field")
        assert "wings" in answer.json()["error"]["message"]
        assert answer.json()["error"]["param"].endswith("wings")
    refused(client.post(path, json=beside(body, mood="wild")), "mood", "invalid_request")
    refused(client.post(path, json=beside(body, depth="deep")), "depth", "invalid_request")
    assert system.balance(account) == before


def test_a_field_inside_a_message_is_refused_as_ever(caller: tuple[httpx.Client, int]) -> None:
    body = {"model": "talk", "messages": [{"role": "user", "content": "x", "mood": "kind"}]}
    refused(caller[0].post("/v1/chat/completions", json=body), "messages[0].mood", "unknown_field")


def test_a_field_that_comes_twice_is_refused_beside_unknown_ones_too(caller: tuple[httpx.Client, int]) -> None:
    text = '{"model": "talk", "messages": [{"role": "user", "content": "x"}], "mood": "kind", "mood": "stern"}'
    answer = caller[0].post("/v1/chat/completions", content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "mood"


def test_forms_have_them_as_text(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    file = {"image": ("a.png", picture(), "image/png")}
    form = {"model": "draw", "prompt": "x", "guide": "0.5", "watermark": "false"}
    assert client.post("/v1/images/edits", data=form, files=file).status_code == 200
    refused(client.post("/v1/images/edits", data=form | {"guide": "2"}, files=file), "guide", "invalid_request")
    refused(client.post("/v1/images/edits", data=form | {"wings": "2"}, files=file), "wings", "unknown_field")


def test_openais_client_sends_them_as_extra_body(system: System) -> None:
    _, key = system.account(f"vendor-sdk-{time.time_ns()}", "10")
    with openai.OpenAI(base_url=f"{system.base_url}/v1", api_key=key, max_retries=0) as client:
        answer = client.chat.completions.create(
            model="acme/talk",
            messages=HELLO,  # type: ignore[arg-type]
            extra_body={"mood": "stern"},
        )
        assert answer.model == "talk"
        image = client.images.generate(model="draw", prompt="x", extra_body={"guide": 0.5})
        assert base64.b64decode((image.data or [])[0].b64_json or "")[:4] == b"\x89PNG"
        with pytest.raises(openai.BadRequestError, match="wings"):
            client.images.generate(model="draw", prompt="x", extra_body={"wings": 2})


def test_models_are_found_by_their_aliases_and_listed_once(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    answer = client.post("/v1/chat/completions", json={"model": "acme/talk", "messages": HELLO})
    assert answer.json()["model"] == "talk"
    rows = {row["id"]: row for row in client.get("/v1/models").json()["data"]}
    assert rows.keys() == {"talk", "draw", "plain"}
    assert rows["talk"]["aliases"] == ["acme/talk"]
    assert rows["talk"]["parameters"]["mood"] == {"type": "string", "choices": ["kind", "stern"], "priced": False}
    assert not [route for route in rows["talk"]["routes"] if route.keys() & {"cost", "fields", "fixed"}]


def test_native_media_inputs_have_them_too(caller: tuple[httpx.Client, int]) -> None:
    client, _ = caller
    body = {"model": "draw", "input": {"prompt": "x", "image": IMAGE, "guide": 0.25}}
    answer = client.post("/v1/requests", json=body, headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
