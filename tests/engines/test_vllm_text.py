"""The engine `vllm` on chats and completions: what is sent, what is counted, what is refused."""

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.contract.events import Choice, TextDelta
from tests.engines.vllm_driver import HELLO, Attempt, Driver, serving
from workers.engine import RefusedInput

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore"),  # vLLM and torch warn of themselves
]

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Say how the weather is.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Rome", "Oslo"]},
                "hour": {"type": "integer", "minimum": 0, "maximum": 23},
            },
            "required": ["city", "hour"],
            "additionalProperties": False,
        },
    },
}
CLOCK: dict[str, Any] = {"type": "function", "function": {"name": "clock"}}
PERSON = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}, "name": {"enum": ["Ann", "Bob"]}},
    "required": ["age", "name"],
    "additionalProperties": False,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def llama(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Driver]:
    folder: Path = tmp_path_factory.mktemp("models")
    async with serving(
        folder, "tiny-llama", ["chat", "completion"], tool_parser="hermes", kv_cache_memory_bytes=64 * 2**20
    ) as driver:
        yield driver


def joined(deltas: list[TextDelta], choice: int = 0) -> str:
    return "".join(delta.text for delta in deltas if delta.choice == choice)


def tokens(attempt: Attempt) -> int:
    return sum(delta.tokens for delta in attempt.deltas)


async def only(attempt: Attempt) -> Choice:
    (choice,) = (await attempt.text()).choices
    return choice


@pytest.mark.parametrize("drawing", [{"temperature": 0}, {"seed": 11}])
async def test_a_stream_says_what_the_whole_answer_says(llama: Driver, drawing: dict[str, Any]) -> None:
    whole, stream = llama.chat(max_tokens=40, **drawing), llama.chat(max_tokens=40, stream=True, **drawing)
    expected, told = await only(whole), await only(stream)
    assert told == expected
    assert joined(stream.deltas) == expected.text
    assert stream.deltas[-1].finish_reason == expected.finish_reason
    assert [delta.finish_reason for delta in stream.deltas[:-1]] == [None] * (len(stream.deltas) - 1)
    assert whole.run.units == stream.run.units
    assert tokens(stream) == stream.run.units.output_tokens
    assert not whole.frames, "nobody watches"


async def test_tokens_are_counted_exactly(llama: Driver) -> None:
    attempt = llama.complete(prompt="the quick brown fox", max_tokens=25, ignore_eos=True)
    assert (await only(attempt)).finish_reason == "length"
    assert attempt.run.units.output_tokens == 25
    assert 0 < attempt.run.units.input_tokens <= len(b"the quick brown fox")


async def test_a_repeated_prompt_is_found_in_the_cache_and_counted_so(llama: Driver) -> None:
    prompt = "water " * 300
    for _ in range(2):
        attempt = llama.complete(prompt=prompt, max_tokens=1)
        await attempt.text()
    units = attempt.run.units
    assert 0 < units.cached_tokens <= units.input_tokens


async def test_half_characters_are_held_back_and_their_tokens_counted(llama: Driver) -> None:
    form = {"type": "regex", "regex": "[日本語😀]{12}"}
    attempt = llama.chat(max_tokens=100, response_format=form, stream=True)
    choice = await only(attempt)
    assert len(choice.text) == 12
    assert "�" not in choice.text
    assert all(delta.text or delta.finish_reason for delta in attempt.deltas)
    assert len(attempt.deltas) < attempt.run.units.output_tokens == tokens(attempt)


async def test_several_choices_differ_and_are_all_counted(llama: Driver) -> None:
    attempt = llama.chat(n=3, seed=5, max_tokens=12, ignore_eos=True, stream=True)
    choices = (await attempt.text()).choices
    assert len({choice.text for choice in choices}) == 3
    assert [joined(attempt.deltas, index) for index in range(3)] == [choice.text for choice in choices]
    assert attempt.run.units.output_tokens == 36 == tokens(attempt)


async def test_a_seed_repeats_an_answer_and_another_does_not(llama: Driver) -> None:
    seeds = (-(2**63), -(2**63), 2**63 - 1)
    first, again, other = [await only(llama.chat(seed=seed, max_tokens=16)) for seed in seeds]
    assert first == again != other


@pytest.mark.parametrize("many", [True, False])
async def test_stop_texts_end_the_answer_and_stay_out_of_it(llama: Driver, many: bool) -> None:
    free = (await only(llama.chat(seed=9, max_tokens=40, ignore_eos=True))).text
    word = free.split()[5]
    stop = [word, "never to be said"] if many else word
    stream = llama.chat(seed=9, max_tokens=40, ignore_eos=True, stop=stop, stream=True)
    choice = await only(stream)
    assert choice.finish_reason == "stop"
    assert choice.text == free[: free.index(word)] == joined(stream.deltas)


async def test_least_and_most_tokens_are_kept_to(llama: Driver) -> None:
    lengths = []
    for seed in range(6):
        attempt = llama.chat(seed=seed, temperature=2, min_tokens=20, max_completion_tokens=24, max_tokens=9000)
        await attempt.text()
        lengths.append(attempt.run.units.output_tokens)
    assert all(20 <= length <= 24 for length in lengths)


async def test_sampling_fields_reach_the_engine(llama: Driver) -> None:
    greedy = (await only(llama.chat(temperature=0, max_tokens=20))).text
    assert (await only(llama.chat(top_k=1, max_tokens=20))).text == greedy
    assert (await only(llama.chat(min_p=1, max_tokens=20))).text == greedy
    assert (await only(llama.chat(top_p=1e-6, max_tokens=20))).text == greedy
    long = (await only(llama.chat(temperature=0, max_tokens=60, ignore_eos=True))).text.split()
    varied = llama.chat(
        temperature=0, max_tokens=60, ignore_eos=True, frequency_penalty=2, presence_penalty=2, repetition_penalty=2
    )
    assert len(set((await only(varied)).text.split())) > len(set(long))


async def test_logprobs_of_a_chat_come_token_by_token(llama: Driver) -> None:
    attempt = llama.chat(temperature=0, max_tokens=8, ignore_eos=True, logprobs=True, top_logprobs=3, stream=True)
    choice = await only(attempt)
    assert choice.logprobs is not None
    assert "".join(each.token for each in choice.logprobs) == choice.text
    assert len(choice.logprobs) == 8
    for each in choice.logprobs:
        assert len(each.top) == 3
        assert each.top[0] == (each.token, each.logprob), "greedy takes the likeliest"
        assert [chance for _, chance in each.top] == sorted((chance for _, chance in each.top), reverse=True)
        assert each.logprob < 0
    sent = [each for delta in attempt.deltas for each in delta.logprobs or ()]
    assert sent == choice.logprobs


async def test_logprobs_without_rivals(llama: Driver) -> None:
    choice = await only(llama.chat(max_tokens=3, logprobs=True))
    assert choice.logprobs is not None
    assert all(each.top == [] for each in choice.logprobs)
    assert (await only(llama.chat(max_tokens=3))).logprobs is None


@pytest.mark.parametrize("stream", [True, False])
async def test_a_completion_echoes_its_prompt_with_logprobs(llama: Driver, stream: bool) -> None:
    prompt = "the water of the river"
    attempt = llama.complete(prompt=prompt, echo=True, logprobs=1, max_tokens=4, ignore_eos=True, stream=stream)
    choice = await only(attempt)
    assert choice.text.startswith(prompt)
    assert choice.logprobs is not None
    assert "".join(each.token for each in choice.logprobs) == choice.text
    assert math.isnan(choice.logprobs[0].logprob), "the first token follows nothing"
    assert attempt.run.units.output_tokens == 4
    if stream:
        assert joined(attempt.deltas) == choice.text
        assert tokens(attempt) == 4


@pytest.mark.parametrize("stream", [True, False])
async def test_a_json_schema_is_kept_to(llama: Driver, stream: bool) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    choice = await only(llama.chat(max_tokens=100, response_format=form, stream=stream))
    person = json.loads(choice.text)
    assert person["name"] in {"Ann", "Bob"}
    assert 0 <= person["age"] <= 99
    assert choice.finish_reason == "stop"


async def test_a_regex_is_matched(llama: Driver) -> None:
    form = {"type": "regex", "regex": "[a-f]{4}-[0-9]{3}(x|y)"}
    texts = [(await only(llama.chat(max_tokens=40, response_format=form))).text for _ in range(3)]
    assert all(re.fullmatch("[a-f]{4}-[0-9]{3}(x|y)", text) for text in texts)


async def test_one_of_the_choices_is_taken(llama: Driver) -> None:
    form = {"type": "choice", "choices": ['a "quoted" one', "two\nlines", "日本"]}
    texts = {(await only(llama.complete(prompt="hm", max_tokens=40, response_format=form))).text for _ in range(6)}
    assert texts <= set(form["choices"])


async def test_any_json_object(llama: Driver) -> None:
    form = {"type": "json_object"}
    attempts = [llama.chat(max_tokens=400, seed=seed, response_format=form) for seed in range(8)]
    choices = [await only(attempt) for attempt in attempts]
    assert all(choice.text.startswith("{") for choice in choices)
    assert all(isinstance(json.loads(choice.text), dict) for choice in choices if choice.finish_reason == "stop")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_named_tool_is_called(llama: Driver, stream: bool) -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    attempt = llama.chat(max_tokens=100, tools=[CLOCK, WEATHER], tool_choice=named, stream=stream)
    choice = await only(attempt)
    assert choice.finish_reason == "tool_calls"
    assert choice.text == ""
    assert choice.tool_calls is not None
    (call,) = choice.tool_calls
    assert call.name == "weather"
    assert json.loads(call.arguments)["city"] in {"Rome", "Oslo"}
    if stream:
        pieces = [piece for delta in attempt.deltas for piece in delta.tool_calls or ()]
        assert "".join(piece.arguments for piece in pieces) == call.arguments
        assert [piece.id for piece in pieces if piece.id] == [call.id]
        assert tokens(attempt) == attempt.run.units.output_tokens


@pytest.mark.parametrize("stream", [True, False])
async def test_a_required_call_is_one_of_the_tools(llama: Driver, stream: bool) -> None:
    attempt = llama.chat(
        max_tokens=300, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, stream=stream
    )
    choice = await only(attempt)
    assert choice.tool_calls is not None
    (call,) = choice.tool_calls
    assert (call.index, call.name, choice.finish_reason) == (0, "weather", "tool_calls")
    assert set(json.loads(call.arguments)) == {"city", "hour"}
    if stream:
        pieces = [piece for delta in attempt.deltas for piece in delta.tool_calls or ()]
        assert "".join(piece.arguments for piece in pieces) == call.arguments


CALLS = """A moment.
<tool_call>
{"name": "weather", "arguments": {"city": "Rome", "hour": 3}}
</tool_call>
<tool_call>
{"name": "clock", "arguments": {}}
</tool_call>"""


@pytest.mark.parametrize("at_once", [True, False])
async def test_calls_in_free_text_are_read_by_the_parser_of_the_model(llama: Driver, at_once: bool) -> None:
    """A model of random weights calls nothing by itself, so its parser is given what another model would write."""
    assert llama.engine.model is not None
    reader = llama.engine.model.tool_reader([WEATHER, CLOCK])
    assert reader.keep_special, "the marks of a call are special tokens"
    parts = [CALLS] if at_once else re.findall(r"\s*\S+", CALLS)
    pieces = [reader.read(part, [], finished=part is parts[-1]) for part in parts]
    assert "".join(piece.text for piece in pieces).strip() == "A moment."
    calls = [call for piece in pieces for call in piece.calls]
    assert [name for _, name, _ in calls if name] == ["weather", "clock"]
    arguments = ["".join(part for index, _, part in calls if index == wanted) for wanted in (0, 1)]
    assert [json.loads(each) for each in arguments] == [{"city": "Rome", "hour": 3}, {}]
    assert reader.called


@pytest.mark.parametrize("stream", [True, False])
async def test_free_text_with_tools_stays_text(llama: Driver, stream: bool) -> None:
    attempt = llama.chat(max_tokens=20, seed=3, tools=[WEATHER], stream=stream)
    choice = await only(attempt)
    assert choice.text
    assert choice.tool_calls is None
    assert choice.finish_reason in {"stop", "length"}


async def test_tools_lengthen_the_prompt_unless_none_may_be_called(llama: Driver) -> None:
    sizes = {}
    for choice in ("auto", "none"):
        attempt = llama.chat(max_tokens=1, tools=[WEATHER], tool_choice=choice)
        await attempt.text()
        sizes[choice] = attempt.run.units.input_tokens
    plain = llama.chat(max_tokens=1)
    await plain.text()
    assert sizes["auto"] > sizes["none"] == plain.run.units.input_tokens


async def test_a_conversation_with_calls_and_their_results_is_a_prompt(llama: Driver) -> None:
    call = {"id": "call_1", "function": {"name": "weather", "arguments": '{"city": "Rome", "hour": 3}'}}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
        {"role": "developer", "content": "be kind"},
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
    ]
    assert (await only(llama.chat(messages=messages, max_tokens=4, tools=[WEATHER]))).text


async def test_a_prompt_longer_than_the_context_is_refused_before_it_runs(llama: Driver) -> None:
    for prompt in ("x" * 5000, "x" * 4096, "x" * 10_000_000):
        attempt = llama.complete(prompt=prompt, max_tokens=1)
        with pytest.raises(RefusedInput, match="context"):
            await attempt.text()
        assert not attempt.run.forward_began
        assert attempt.run.units.input_tokens == 0


async def test_the_answer_ends_where_the_context_does(llama: Driver) -> None:
    attempt = llama.complete(prompt="x" * 4000, ignore_eos=True, max_tokens=1_000)
    assert (await only(attempt)).finish_reason == "length"
    assert attempt.run.units.output_tokens == 96


@pytest.mark.parametrize(
    "given",
    [
        {"tool_choice": "required"},
        {"tools": [CLOCK], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"min_tokens": 5, "max_tokens": 4},
        {"n": 2, "temperature": 0},
        {"top_logprobs": 2},
        {"min_tokens": 5, "max_tokens": 9, "response_format": {"type": "json_object"}},
        {"response_format": {"type": "regex", "regex": "("}},
        {"response_format": {"type": "regex", "regex": "(a)\\1"}},
        {"response_format": {"type": "regex", "regex": "a\x00b"}},
        {"response_format": {"type": "regex", "regex": "[^\\s\\S]"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/nowhere"}}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}}},
    ],
)
async def test_contradictions_and_impossible_formats_are_refused(llama: Driver, given: dict[str, Any]) -> None:
    with pytest.raises(RefusedInput):
        await llama.chat(**{"max_tokens": 20} | given).text()


@pytest.mark.parametrize(
    "form",
    [
        {"type": "regex", "regex": "(a+)+b"},
        {"type": "regex", "regex": "(a*)*(a*)*(a*)*(a*)*b"},
        {"type": "regex", "regex": "(.{1,49}){1,50}"},
        {"type": "regex", "regex": "((a|b)*|(a|b)*|(a|b)*)*c"},
        {"type": "regex", "regex": "((a{1,100}){1,100}){1,100}"},
        {"type": "json_schema", "json_schema": {"schema": {"anyOf": [{"type": "array", "items": {"$ref": "#"}}] * 9}}},
        {"type": "json_schema", "json_schema": {"schema": {"type": "string", "pattern": "^(a?){500}(a?){500}$"}}},
        {"type": "json_schema", "json_schema": {"schema": {"enum": [f"v{number}" for number in range(7000)]}}},
    ],
)
async def test_a_hostile_format_holds_up_nobody_else(llama: Driver, form: dict[str, Any]) -> None:
    """Others go on while it runs, and the engine lives."""
    hostile = llama.chat(max_tokens=400, response_format=form)
    other = llama.chat(max_tokens=300, ignore_eos=True, stream=True)
    await asyncio.wait_for(other.text(), 15)
    try:
        await hostile.text()
    except RefusedInput:
        assert hostile.run.units.output_tokens < 400
    assert llama.engine.failure() is None


async def test_cancelled_half_way_it_stops_at_once_and_has_counted_what_was_produced(llama: Driver) -> None:
    for stream in (True, False):
        attempt = llama.chat(max_tokens=3500, ignore_eos=True, stream=stream, n=2)
        if stream:
            await attempt.produced(200)
        else:
            await asyncio.sleep(1.0)
        attempt.task.cancel()
        clock = asyncio.get_running_loop().time
        cancelled_at = clock()
        with pytest.raises(asyncio.CancelledError):
            await attempt.task
        assert clock() - cancelled_at < 0.5
        counted = attempt.run.units.output_tokens
        assert 50 < counted < 6000
        assert tokens(attempt) <= counted
        assert attempt.run.units.input_tokens > 0
        assert attempt.run.phases.forward_us > 0
        await asyncio.sleep(0.1)
        assert attempt.run.units.output_tokens == counted
        assert llama.engine.capacity() == 32, "its place is free again"


@asynccontextmanager
async def cancelled(attempts: list[Attempt]) -> AsyncIterator[None]:
    """Cancel all attempts at the end of a block, however it ends: the tests after it share the engine."""
    try:
        yield
    finally:
        for attempt in attempts:
            attempt.task.cancel()
        await asyncio.wait([attempt.task for attempt in attempts])


async def shrinks(llama: Driver, most: int) -> None:
    """Wait until there is room for so many and no more."""
    async with asyncio.timeout(60):
        while llama.engine.capacity() > most:
            await asyncio.sleep(0.01)


async def test_room_shrinks_with_what_runs(llama: Driver) -> None:
    assert llama.engine.capacity() == 32
    attempts = [llama.chat(max_tokens=2000, ignore_eos=True) for _ in range(20)]
    async with cancelled(attempts):
        await shrinks(llama, 12)
        assert llama.engine.capacity() == 12
        attempts.append(llama.chat(max_tokens=2000, ignore_eos=True, n=12))
        await shrinks(llama, 0)
    assert llama.engine.capacity() == 32


async def test_room_shrinks_with_memory_too(llama: Driver) -> None:
    """64 MiB hold 65,536 tokens of this model: long prompts fill them before 32 sequences do."""
    attempts = [
        llama.complete(prompt=f"{number} " + "x" * 3800, max_tokens=250, ignore_eos=True) for number in range(14)
    ]
    async with cancelled(attempts):
        await shrinks(llama, 32 - 14 - 1)


async def test_phases_say_where_the_time_went(llama: Driver) -> None:
    attempt = llama.chat(max_tokens=100, ignore_eos=True)
    clock = asyncio.get_running_loop().time
    began = clock()
    await attempt.text()
    took_us = (clock() - began) * 1e6
    phases = attempt.run.phases
    assert phases.forward_us > 10 * phases.queue_us
    assert phases.preprocess_us > 0
    assert phases.preprocess_us + phases.forward_us + phases.queue_us <= took_us


async def test_embeddings_are_not_its_task(llama: Driver) -> None:
    with pytest.raises(RefusedInput, match="embedding"):
        await llama.embed(input="hm").vectors()
