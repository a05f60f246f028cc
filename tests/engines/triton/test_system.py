"""A whole running system whose models are on a real Triton server, called by openai-python."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.engines.triton.driver import TEMPLATE
from tests.engines.triton.server import TritonServer
from tests.system import System, running_system

pytestmark = pytest.mark.slow

READY_S = 120.0
MESSAGES = [{"role": "user", "content": "hello there"}]
CATALOG = """
pools:
  triton: {{engine: triton, lease_ms: 3000}}
models:
  talker:
    tasks: [chat, completion]
    description: TensorRT-LLM's ensemble, on Triton.
    context_tokens: 2048
    max_output_tokens: 64
    prompt_overhead_tokens: 8
    price: [{{usd: 1, per: 1M input tokens}}, {{usd: 4, per: 1M output tokens}}]
    routes: [{{pool: triton}}]
    options: {{url: '{url}', model_name: slow, max_output_tokens: 64, chat_template: {template}}}
  vectors:
    tasks: [embedding]
    description: Texts to vectors, on Triton.
    context_tokens: 512
    price: [{{usd: 1, per: 1M input tokens}}]
    routes: [{{pool: triton}}]
    options:
      url: '{url}'
      model_name: embed_text
      inputs: {{TEXT: input}}
      outputs: {{VECTOR: vector, TOKENS: tokens}}
  painter:
    tasks: [text-to-image]
    description: Words to an image, on Triton.
    price: [{{usd: 0.01, per: image}}]
    routes: [{{pool: triton}}]
    options:
      url: '{url}'
      inputs: {{PROMPT: prompt, WIDTH: width, HEIGHT: height, STEPS: steps, SEED: seed}}
      outputs: {{IMAGE: image, STEPS_RUN: steps}}
"""


@pytest.fixture(scope="module")
def own_triton(triton_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """Answer a server that may be killed."""
    server = TritonServer(triton_program, tmp_path_factory.mktemp("own"), only=["slow", "embed_text", "painter"])
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def triton_system(own_triton: TritonServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("triton-system")
    folder.chmod(0o711)
    catalog = folder / "catalog.yaml"
    catalog.write_text(CATALOG.format(url=own_triton.url, template=json.dumps(TEMPLATE)))
    with running_system(folder / "data", "--catalog", str(catalog), engines="triton") as running_now:
        running_now.wait_ready("talker", "vectors", "painter", within_s=READY_S)
        yield running_now


@pytest.fixture
def client(triton_system: System) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{triton_system.base_url}/v1", api_key=triton_system.api_key, max_retries=0) as made:
        yield made


def test_a_stream_is_charged_by_the_tokens_it_made(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(  # type: ignore[call-overload]
        model="talker", messages=MESSAGES, max_tokens=6, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == " gate fare lane tram line card"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    usage = chunks[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (4, 6)
    assert usage.charge_nanos == 4 * 1000 + 6 * 4000


def test_an_embedding_and_an_image_are_charged(client: openai.OpenAI, triton_system: System) -> None:
    answer = client.embeddings.create(model="vectors", input=["a gate", "a fare"], encoding_format="float")
    assert [len(row.embedding) for row in answer.data] == [8, 8]
    assert answer.usage.charge_nanos == 4 * 1000  # type: ignore[attr-defined]
    body = {"model": "painter", "input": {"prompt": "a gate", "size": "64x32", "steps": 2}}
    with triton_system.client() as plain:
        made = plain.post("/v1/requests", json=body, headers={"prefer": "wait=30"})
    assert (made.status_code, made.json()["status"]) == (200, "succeeded"), made.text
    assert made.json()["charge_nanos"] == 10_000_000
    assert made.json()["usage"]["images"] == 1


def test_a_caller_that_leaves_stops_the_model_and_pays_for_what_was_made(
    triton_system: System, own_triton: TritonServer
) -> None:
    account, key = triton_system.account("triton-leaver", "1")
    body = {"model": "talker", "messages": MESSAGES, "max_tokens": 1500, "stream": True}
    with triton_system.client(key) as client:
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            request_id = answer.headers["x-request-id"]
            for count, _ in enumerate(answer.iter_lines()):
                if count > 10:
                    break
        end = time.monotonic() + READY_S
        while (shown := client.get(f"/v1/requests/{request_id}").json())["status"] == "running":
            assert time.monotonic() < end
            time.sleep(0.05)
    assert shown["status"] == "cancelled"
    assert 0 < shown["usage"]["output_tokens"] < 1500
    assert triton_system.balance(account)["held_nanos"] == 0
    while own_triton.diary(request_id)[-1]["event"] != "cancelled":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_server_that_dies_fails_what_ran_and_serves_what_waited_when_it_is_back(
    triton_system: System, own_triton: TritonServer
) -> None:
    body = {"model": "talker", "input": {"messages": MESSAGES, "max_tokens": 1500}}
    with triton_system.client() as client:
        running = client.post("/v1/requests", json=body).json()["id"]
        end = time.monotonic() + READY_S
        while not own_triton.diary(running):
            assert time.monotonic() < end
            time.sleep(0.05)
        own_triton.kill()
        while (shown := client.get(f"/v1/requests/{running}").json())["status"] in ("queued", "running"):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert (shown["status"], shown["error"]["code"]) == ("failed", "engine_lost"), shown
        own_triton.start(wait=False)
        small = {"model": "talker", "input": {"messages": MESSAGES, "max_tokens": 2}}
        waited = client.post("/v1/requests", json=small, headers={"prefer": "wait=60"})
        assert waited.json()["status"] == "succeeded", waited.text


def test_the_books_hold(triton_system: System) -> None:
    verified = triton_system.run("books", "verify")
    assert verified.returncode == 0, verified.stdout
