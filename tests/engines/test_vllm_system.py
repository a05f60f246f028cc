"""The README's calls against a whole system whose chat and embeddings run on a real vLLM."""

import json
import re
import struct
import time
from base64 import b64decode
from collections.abc import Iterator

import openai
import pytest

from tests.system import System, running_system

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

LOAD_S = 240.0
MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def vllm_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("vllm")
    folder.chmod(0o711)
    with running_system(folder / "data", engines="vllm") as running_now:
        with running_now.client() as client:
            states = {row["id"]: row["state"] for row in client.get("/v1/models").json()["data"]}
        assert states["tiny-llama"] in ("loading", "no_worker", "ready")
        running_now.wait_ready("tiny-llama", "tiny-embed", "tiny-rerank", within_s=LOAD_S)
        yield running_now


@pytest.fixture
def client(vllm_system: System) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{vllm_system.base_url}/v1", api_key=vllm_system.api_key, max_retries=0) as made:
        yield made


def test_a_stream_is_charged_by_the_tokens_it_made(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(  # type: ignore[call-overload]
        model="tiny-llama",
        messages=MESSAGES,
        max_tokens=24,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    )
    chunks = list(stream)
    usage = chunks[-1].usage
    assert usage.completion_tokens == 24
    assert usage.charge_nanos > 0
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"


def test_an_answer_fits_its_schema(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "size": {"enum": ["s", "m"]}},
        "required": ["ok", "size"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(  # type: ignore[call-overload]
        model="tiny-llama",
        messages=MESSAGES,
        max_tokens=200,
        seed=3,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    told = json.loads(answer.choices[0].message.content)
    assert isinstance(told["ok"], bool)
    assert told["size"] in ("s", "m")


def test_an_answer_matches_its_expression(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(  # type: ignore[call-overload]
        model="tiny-llama",
        messages=MESSAGES,
        max_tokens=32,
        extra_body={"response_format": {"type": "regex", "regex": "[a-f]{4}-[0-9]{2}"}},
    )
    assert re.fullmatch("[a-f]{4}-[0-9]{2}", answer.choices[0].message.content)


def test_choices_and_logprobs(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(  # type: ignore[call-overload]
        model="tiny-llama", messages=MESSAGES, max_tokens=4, n=2, logprobs=True, top_logprobs=2, temperature=1
    )
    assert len(answer.choices) == 2
    assert all(len(token.top_logprobs) == 2 for token in answer.choices[0].logprobs.content)


def test_an_embedding_is_alike_in_both_encodings(client: openai.OpenAI) -> None:
    plain = client.embeddings.create(model="tiny-embed", input=["a gate", "a fare"], encoding_format="float")
    packed = client.embeddings.with_raw_response.create(
        model="tiny-embed", input=["a gate", "a fare"], encoding_format="base64"
    ).http_response.json()
    raw = b64decode(packed["data"][1]["embedding"])
    assert list(struct.unpack(f"<{len(raw) // 4}f", raw)) == pytest.approx(plain.data[1].embedding)
    assert packed["usage"]["charge_nanos"] > 0


def test_documents_are_ranked_and_charged_by_the_tokens_of_all_pairs(vllm_system: System) -> None:
    account, key = vllm_system.account("vllm-ranker", "1")
    documents = ["the river runs to the sea", "a horse", "the boy ran to the river"]
    given = {"query": "where does the river run", "documents": documents, "top_n": 2}
    with vllm_system.client(key) as client:
        answer = client.post(
            "/v1/requests", json={"model": "tiny-rerank", "input": given}, headers={"prefer": "wait=60"}
        )
        assert answer.status_code == 200, answer.text
        told = answer.json()
        results = told["output"]["results"]
        assert len({result["index"] for result in results}) == 2
        assert 1 >= results[0]["relevance_score"] >= results[1]["relevance_score"] >= 0
        tokens = told["usage"]["input_tokens"]
        assert 3 * len(given["query"].split()) < tokens < 200
        assert told["charge_nanos"] == tokens * 20, "0.02 dollars a million"

        refused = client.post("/v1/requests", json={"model": "tiny-rerank", "input": given | {"documents": []}})
        assert refused.status_code == 400
        assert "documents" in refused.json()["error"]["message"]
        long = given | {"documents": ["a", "tree " * 700]}
        failed = client.post(
            "/v1/requests", json={"model": "tiny-rerank", "input": long}, headers={"prefer": "wait=60"}
        )
    assert 400 <= failed.status_code < 500
    assert "documents[1]" in failed.json()["error"]["message"]
    assert vllm_system.balance(account)["held_nanos"] == 0


def test_a_caller_that_leaves_stops_the_engine_and_pays_for_what_was_made(vllm_system: System) -> None:
    account, key = vllm_system.account("vllm-leaver", "1")
    body = {"model": "tiny-llama", "messages": MESSAGES, "max_tokens": 1500, "stream": True, "ignore_eos": True}
    with vllm_system.client(key) as client:
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            request_id = answer.headers["x-request-id"]
            for count, _ in enumerate(answer.iter_lines()):
                if count > 20:
                    break
        left = time.monotonic()
        while (shown := client.get(f"/v1/requests/{request_id}").json())["status"] == "running":
            assert time.monotonic() - left < 2.0
            time.sleep(0.05)
    assert shown["status"] == "cancelled"
    assert 0 < shown["usage"]["output_tokens"] < 1500
    assert vllm_system.balance(account)["held_nanos"] == 0


def test_the_books_hold(vllm_system: System) -> None:
    verified = vllm_system.run("books", "verify")
    assert verified.returncode == 0, verified.stdout
