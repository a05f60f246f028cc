"""openai-python, unmodified, pointed at us."""

from collections.abc import Iterator

import openai
import pytest

from tests.system import System


@pytest.fixture
def client(system: System) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{system.base_url}/v1", api_key=system.api_key, max_retries=0) as made:
        yield made


MESSAGES = [{"role": "user", "content": "Say something."}]


def test_chat_answers_with_usage_and_charge(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="fake-chat", messages=MESSAGES)  # type: ignore[call-overload]
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.completion_tokens == 20
    assert answer.usage.charge_nanos == 1_000_000
    assert answer.usage.cost == 0.001
    assert answer.id.startswith("req_")


def test_a_stream_says_the_same_as_the_whole_answer_and_ends_with_its_usage(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="fake-chat", messages=MESSAGES)  # type: ignore[call-overload]
    stream = client.chat.completions.create(  # type: ignore[call-overload]
        model="fake-chat", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-1].usage.charge_nanos == 1_000_000


def test_completion_streams(client: openai.OpenAI) -> None:
    chunks = list(client.completions.create(model="fake-chat", prompt="Once", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)


@pytest.mark.parametrize("audio", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
def test_speech_comes_in_every_format(client: openai.OpenAI, system: System, audio: str) -> None:
    system.wait_ready("espeak-ng")
    answer = client.audio.speech.create(model="espeak-ng", voice="alloy", input="Hello there.", response_format=audio)  # type: ignore[arg-type]
    assert len(answer.content) > 1000


def test_speech_streams(client: openai.OpenAI, system: System) -> None:
    system.wait_ready("espeak-ng")
    with client.audio.speech.with_streaming_response.create(
        model="espeak-ng", voice="alloy", input="Hello there, this is a stream.", stream_format="audio"
    ) as answer:
        assert sum(len(piece) for piece in answer.iter_bytes()) > 1000


def test_models_are_listed_with_their_prices(client: openai.OpenAI) -> None:
    rows = {row.id: row for row in client.models.list()}
    assert rows["fake-chat"].tasks  # type: ignore[attr-defined]
    assert rows["fake-chat"].price  # type: ignore[attr-defined]
    assert client.models.retrieve("fake-chat").id == "fake-chat"


def test_errors_are_the_sdks_own(client: openai.OpenAI, system: System) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="no-such-model", messages=MESSAGES)  # type: ignore[call-overload]
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(  # type: ignore[call-overload]
            model="fake-chat", messages=MESSAGES, extra_body={"api_base": "http://127.0.0.1"}
        )
    assert refused.value.param == "api_base"
    with (
        openai.OpenAI(base_url=f"{system.base_url}/v1", api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()
