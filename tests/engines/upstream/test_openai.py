"""The protocol `openai` over real HTTP: what is sent, what is read, what is counted."""

import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.events import Choice, GalleryOutput, MediaOutput, RankingOutput, Segment, TextOutput
from gateway.contract.pools import UpstreamSpec
from tests.engines.upstream.several import Driver, media, model, target
from tests.upstreams.openai import WORDS, OpenAi, Way
from tests.upstreams.serving import HOST, standing
from workers.engine import EngineError, RefusedInput

TASKS: tuple[Any, ...] = (
    "chat",
    "completion",
    "embedding",
    "rerank",
    "text-to-image",
    "image-edit",
    "text-to-speech",
    "speech-to-text",
    "text-to-video",
    "image-to-video",
)


@pytest.fixture
def there() -> Iterator[OpenAi]:
    stand_in = OpenAi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
async def driver(there: OpenAi, tmp_path: Path) -> AsyncIterator[Driver]:
    made = Driver(tmp_path, allow=HOST)
    shaped = target("there", fields={"max_tokens": "max_completion_tokens"}, fixed={"user": "gate", "n": 1})
    hasty = UpstreamSpec(name="hasty", protocol="openai", url=there.base, timeout_s=1)
    models = (model("m", target("there"), tasks=TASKS), model("shaped", shaped), model("hurried", target("hasty")))
    await made.load({"there": there.base, "hasty": hasty}, *models)
    yield made
    await made.close()


async def test_a_chat_is_sent_by_allow_list_and_counted_by_the_upstreams_usage(there: OpenAi, driver: Driver) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}
    there.ways["m"] = Way(usage={"prompt_tokens": 9, "completion_tokens": 5, "cost": 0.00012345} | details)
    attempt = driver.start("m", max_completion_tokens=7, temperature=0.5, stop=["x"])
    assert await attempt.output() == TextOutput([Choice(WORDS)])
    asked = there.seen[0]
    assert asked.headers["authorization"] == f"Bearer {there.key}"
    assert asked.json() == {
        "model": "m",
        "messages": [{"role": "user", "content": "say it"}],
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "stop": ["x"],
    }
    units = attempt.run.units
    assert (units.input_tokens, units.cached_tokens, units.output_tokens, units.reasoning_tokens) == (9, 4, 5, 2)
    (step,) = attempt.run.steps
    assert (step.name, step.model, step.outcome, step.upstream, step.pool) == ("there", "m", "succeeded", True, "away")
    assert (step.cost_nanos, step.estimated, step.units) == (123_450, False, units)
    assert step.phases.forward_us == attempt.run.phases.forward_us > 0


async def test_a_route_renames_fields_and_what_it_fixes_wins(there: OpenAi, driver: Driver) -> None:
    await driver.start("shaped", max_tokens=7, n=2).output()
    body = there.seen[0].json()
    assert (body["max_completion_tokens"], body["user"], body["n"], "max_tokens" in body) == (7, "gate", 1, False)


async def test_tools_and_formats_go_whole_and_what_sdks_send_back_does_not(there: OpenAi, driver: Driver) -> None:
    function = {"name": "f", "arguments": "{}"}
    await driver.start(
        "m",
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "reasoning_content": "hm",
                "annotations": [],
                "tool_calls": [{"id": "1", "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "4"},
        ],
        tools=[{"function": {"name": "f", "parameters": {"type": "object"}}}],
        tool_choice={"function": {"name": "f"}},
        response_format={"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
    ).output()
    body = there.seen[0].json()
    assert body["messages"][1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    assert body["messages"][0]["content"] == [{"type": "text", "text": "hi"}]
    assert body["tools"] == [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert body["response_format"]["json_schema"] == {"name": "answer", "schema": {"type": "object"}}


async def test_tool_calls_thoughts_and_logprobs_come_back(there: OpenAi, driver: Driver) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]}
    row = {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1}]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": {"content": [row]}}
    there.ways["m"] = Way(extra={"choices": [choice]})
    output = await driver.start("m").output()
    (made,) = output.choices
    assert (made.text, made.reasoning, made.finish_reason) == ("", "hm", "tool_calls")
    assert (made.tool_calls[0].name, made.tool_calls[0].arguments) == ("f", '{"a":1}')
    assert (made.logprobs[0].logprob, made.logprobs[0].top) == (-0.5, [("b", -1.0)])


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -4},
        "many",
        {"prompt_tokens": "3", "completion_tokens": None},
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_missing_or_garbled_usage_is_estimated_and_never_zero(
    there: OpenAi, driver: Driver, usage: Any, stream: bool
) -> None:
    there.ways["m"] = Way(usage=usage)
    attempt = driver.start("m", stream=stream)
    await attempt.output()
    (step,) = attempt.run.steps
    assert step.estimated
    assert step.units.output_tokens == -(-len(WORDS) // 4) == 7
    assert 10 < step.units.input_tokens < 50


async def test_a_stream_is_passed_on_and_counted_by_its_last_chunk(there: OpenAi, driver: Driver) -> None:
    there.ways["m"] = Way(headers={"x-litellm-response-cost": "0.002"})
    attempt = driver.start("m", stream=True)
    await attempt.output()
    assert "".join(attempt.texts).split() == WORDS.split()
    assert there.seen[0].json()["stream_options"] == {"include_usage": True}
    (step,) = attempt.run.steps
    assert (step.units.output_tokens, step.units.input_tokens, step.estimated, step.cost_nanos) == (
        6,
        2,
        False,
        2_000_000,
    )


@pytest.mark.parametrize("way", [Way(pieces=3), Way(stop=False, done=False), Way(pieces=0)])
async def test_half_a_stream_is_a_failure_whose_pieces_are_counted(there: OpenAi, driver: Driver, way: Way) -> None:
    there.ways["m"] = way
    attempt = driver.start("m", stream=True)
    error = await attempt.error()
    assert isinstance(error, EngineError)
    assert error.reason == "upstream_error"
    step = attempt.run.steps[0]
    assert (step.outcome, step.reason, step.estimated) == ("failed", "upstream_error", True)
    chars = sum(map(len, attempt.texts))
    assert step.units.output_tokens == max(len(attempt.texts), -(-chars // 4))
    assert bool(chars) == (way.pieces != 0)


async def test_a_stream_without_its_mark_is_whole_where_it_says_why_it_ended(there: OpenAi, driver: Driver) -> None:
    there.ways["m"] = Way(done=False)
    assert (await driver.start("m", stream=True).output()).choices[0].text.split() == WORDS.split()


async def test_completions_vectors_and_rankings(there: OpenAi, driver: Driver) -> None:
    assert (await driver.start("m", "completion", prompt="say it").output()).choices[0].text == WORDS
    attempt = driver.start("m", "embedding", input=["a", "bbb"])
    output = await attempt.output()
    assert [struct.unpack("<3f", vector) for vector in output.vectors] == [(1, 0, 0.5), (3, 1, 0.5)]
    assert (output.dimensions, attempt.run.units.input_tokens, attempt.run.units.output_tokens) == (3, 2, 0)
    attempt = driver.start("m", "rerank", query="q", documents=["long one", "x", "mid"], top_n=2)
    assert await attempt.output() == RankingOutput([(1, 0.5), (2, 0.25)])
    assert attempt.run.units.input_tokens == 7


async def test_images_are_measured_by_their_bytes(there: OpenAi, driver: Driver) -> None:
    attempt = driver.start("m", "text-to-image", prompt="a gate", n=2, size="64x64", quality="high")
    output = await attempt.output()
    assert isinstance(output, GalleryOutput)
    assert [(item.media_type, item.width, item.height) for item in output.items] == [("image/png", 64, 48)] * 2
    assert there.seen[0].json() == {"model": "m", "prompt": "a gate", "n": 2, "size": "64x64", "quality": "high"}
    assert (attempt.run.units.images, attempt.run.units.pixels) == (2, 2 * 64 * 48)
    edited = driver.start("m", "image-edit", prompt="paint it", image=media("picture"))
    assert (await edited.output()).items[0].width == 64
    form = there.asked("POST", "/v1/images/edits")[0].form()
    assert (form["prompt"][1], form["image"][2]) == (b"paint it", "image/png")


async def test_speech_is_streamed_and_measured_and_a_cut_one_fails(there: OpenAi, driver: Driver) -> None:
    attempt = driver.start("m", "text-to-speech", stream=True, input="hello", response_format="wav")
    output = await attempt.output()
    assert isinstance(output, MediaOutput)
    assert (output.media_type, output.duration_ms, attempt.sounds) == ("audio/wav", 2000, output.data)
    assert (attempt.run.units.characters, attempt.run.units.audio_ms) == (5, 2000)
    there.ways["m"] = Way(pieces=1)
    assert (await driver.start("m", "text-to-speech", input="hello").error()).reason == "upstream_error"


async def test_a_transcript_is_charged_by_the_length_that_was_measured_here(there: OpenAi, driver: Driver) -> None:
    attempt = driver.start("m", "speech-to-text", file=media("sound"), timestamp_granularities=["word"])
    output = await attempt.output()
    assert (output.text, output.segments) == ("hello there", [Segment(0, 1500, "hello there")])
    assert [word.text for word in output.words] == ["hello", "there"]
    assert attempt.run.units.audio_ms == 2000


async def test_a_video_is_a_job(there: OpenAi, driver: Driver) -> None:
    attempt = driver.start(
        "m", "image-to-video", keep=True, prompt="go", image=media("picture"), seconds=4.0, size="64x64"
    )
    output = await attempt.output()
    assert output.items[0].media_type == "video/mp4"
    form = there.seen[0].form()
    assert (form["seconds"][1], form["input_reference"][2]) == (b"4", "image/png")
    assert attempt.progress == [0.0, 0.5]
    assert attempt.run.units.video_ms == 1000
    assert attempt.run.steps[0].request == "video_1"


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (Way(status=401, message="bad key sk-abcdefghijklmnopqrstuvwxyz012345"), "upstream_error"),
        (Way(status=402), "upstream_limited"),
        (Way(status=404, message="no such model", code="model_not_found"), "upstream_error"),
        (Way(status=429, code="insufficient_quota"), "upstream_limited"),
        (Way(status=503), "upstream_error"),
        (Way(status=504), "upstream_timeout"),
        (Way(garbled=True), "upstream_error"),
        (Way(extra={"choices": []}), "upstream_error"),
        (Way(extra={"error": {"message": "worker died"}}), "upstream_error"),
        (Way(extra={"error": {"message": "slow down", "code": 429}}), "upstream_limited"),
        (Way(hang=True), "upstream_timeout"),
    ],
)
async def test_each_failure_has_its_reason_and_tells_nothing(
    there: OpenAi, driver: Driver, way: Way, reason: str
) -> None:
    there.ways["m"] = way
    error = await driver.start("hurried" if way.hang else "m").error()
    assert isinstance(error, EngineError)
    assert (error.reason, error.final) == (reason, False)
    assert "sk-" not in f"{error} {getattr(error, 'detail', '')}"


async def test_refusals_are_final(there: OpenAi, driver: Driver) -> None:
    there.ways["m"] = Way(status=400, message="temperature is too high\nfor https://inside.example/x")
    error = await driver.start("m").error()
    assert isinstance(error, RefusedInput)
    assert "temperature is too high for [removed]" in str(error)
    there.ways["m"] = Way(status=400, code="content_policy_violation", message="not that")
    error = await driver.start("m").error()
    assert isinstance(error, EngineError)
    assert (error.reason, error.final) == ("blocked", True)


async def test_formats_of_local_engines_are_refused_before_anything_is_sent(there: OpenAi, driver: Driver) -> None:
    error = await driver.start("m", response_format={"type": "regex", "regex": "a+"}).error()
    assert isinstance(error, RefusedInput)
    assert there.seen == []
