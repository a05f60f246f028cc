"""openai-python's Responses, unmodified, pointed at us."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from gateway.http.openai.responses.bodies import DECODER
from gateway.http.openai.responses.turns import chat_of
from tests.system import System


@pytest.fixture
def client(system: System) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{system.base_url}/v1", api_key=system.api_key, max_retries=0) as made:
        yield made


def test_a_response_has_its_text_its_usage_and_its_charge(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="fake-chat", input="Say something.", instructions="Be short.")
    assert answer.status == "completed"
    assert len(answer.output_text.split()) == 20
    assert answer.usage is not None
    assert (answer.usage.output_tokens, answer.usage.charge_nanos) == (20, 1_000_000)  # type: ignore[attr-defined]
    assert answer.id.startswith("req_")
    assert answer.instructions == "Be short."


def test_a_response_cut_off_at_its_limit_says_so(client: openai.OpenAI) -> None:
    answer = client.responses.create(model="fake-chat", input="Say something.", max_output_tokens=16)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


def test_a_streamed_response_says_the_same_in_numbered_events(client: openai.OpenAI) -> None:
    whole = client.responses.create(model="fake-chat", input="Say something.")
    events = list(client.responses.create(model="fake-chat", input="Say something.", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last = events[-1]
    assert last.type == "response.completed"
    assert text == last.response.output_text == whole.output_text
    assert last.response.usage is not None
    assert last.response.usage.charge_nanos == 1_000_000  # type: ignore[attr-defined]


def test_the_helper_that_follows_a_stream_ends_with_the_whole_response(client: openai.OpenAI) -> None:
    with client.responses.stream(model="fake-chat", input="Say something.") as stream:
        for _ in stream:
            pass
        assert len(stream.get_final_response().output_text.split()) == 20


def test_what_an_answer_held_can_be_sent_back(client: openai.OpenAI) -> None:
    first = client.responses.create(model="fake-chat", input="Say something.")
    turns: list[Any] = [{"role": "user", "content": "Say something."}, *first.output]
    turns.append({"role": "user", "content": [{"type": "input_text", "text": "And again."}]})
    assert client.responses.create(model="fake-chat", input=turns).status == "completed"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "hi", "previous_response_id": "req_1"}, "previous_response_id"),
        ({"input": []}, "input"),
        ({"input": [{"type": "function_call_output", "output": "1"}]}, "input[0].call_id"),
        ({"input": [{"content": "hi"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].image_url"),
        ({"input": "hi", "tools": [{"type": "web_search"}]}, None),
        ({"input": "hi", "api_base": "http://127.0.0.1"}, "api_base"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(system: System, body: dict[str, Any], param: str | None) -> None:
    with system.client() as client:
        answer: httpx.Response = client.post("/v1/responses", json={"model": "fake-chat"} | body)
    assert answer.status_code == 400, answer.text
    if param:
        assert answer.json()["error"]["param"] == param


def test_calls_of_functions_become_the_turns_of_a_chat() -> None:
    body = DECODER.decode(b"""{"model": "m", "instructions": "Help.", "input": [
        {"role": "user", "content": "Weather in Oslo and Rome?"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{\\"city\\": \\"Rome\\"}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "sun"}]}],
        "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "weather"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}}}""")
    chat = chat_of(body)
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "tool"]
    calls = chat.messages[2].tool_calls
    assert calls is not None
    assert [(call.id, call.function.name) for call in calls] == [("c1", "weather"), ("c2", "weather")]
    assert [message.content for message in chat.messages[3:]] == ["rain", "sun"]
    assert chat.tools is not None
    assert chat.tools[0].function.parameters == {"type": "object"}
