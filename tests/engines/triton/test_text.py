"""Chat and completion on a model with the signature of TensorRT-LLM's `ensemble`, on a real Triton server."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.triton.driver import PATIENCE_S, SLOW, TEXT, Attempt, Driver, serving, write_tokenizer
from tests.engines.triton.server import TritonServer
from workers.engine import EngineError, RefusedInput

GREEDY = " gate fare lane tram line card zone ride seat rail"


@pytest.fixture
async def driver(triton: TritonServer) -> AsyncIterator[Driver]:
    async with serving(triton, ["chat", "completion"], **TEXT) as made:
        yield made


@pytest.fixture
async def slow(triton: TritonServer) -> AsyncIterator[Driver]:
    async with serving(triton, ["chat", "completion"], max_concurrency=4, **SLOW) as made:
        yield made


def sent(server: TritonServer, attempt: Attempt) -> dict[str, list[Any]]:
    """Give the inputs that the model got."""
    inputs: dict[str, list[Any]] = server.diary(attempt.id)[0]["inputs"]
    return inputs


async def eventually(server: TritonServer, attempt: Attempt, event: str) -> dict[str, Any]:
    """Wait until the model has written something down."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = [line for line in server.diary(attempt.id) if line["event"] == event]
            if found:
                return found[0]
            await asyncio.sleep(0.02)


async def test_a_stream_comes_token_by_token_and_ends_as_the_whole(driver: Driver, triton: TritonServer) -> None:
    attempt = driver.chat(stream=True, max_tokens=6)
    (choice,) = (await attempt.text()).choices
    assert (choice.text, choice.finish_reason) == (" gate fare lane tram line card", "length")
    assert "".join(delta.text for delta in attempt.deltas) == choice.text
    assert sum(delta.tokens for delta in attempt.deltas) == 6
    assert [delta.finish_reason for delta in attempt.deltas] == [None] * 6 + ["length"]
    assert [frame.seq for frame in attempt.frames] == list(range(7))
    assert attempt.run.units.output_tokens == 6
    assert attempt.run.units.input_tokens == len(["[user]", "hello", "there", "[assistant]"])
    got = sent(triton, attempt)
    assert got["text_input"] == ["[user] hello there [assistant]"]
    assert (got["stream"], got["exclude_input_in_output"]) == ([True], [True])


async def test_without_a_stream_nothing_is_sent_but_the_whole(driver: Driver) -> None:
    attempt = driver.complete("hello", max_tokens=3)
    assert await attempt.said() == " gate fare lane"
    assert attempt.frames == []
    assert attempt.run.units.output_tokens == 3


async def test_an_answer_that_ends_by_itself_stops(driver: Driver) -> None:
    (choice,) = (await driver.complete("end after 2", max_tokens=9).text()).choices
    assert (choice.text, choice.finish_reason) == (" gate fare", "stop")
    assert await driver.complete("end after 2", max_tokens=4, ignore_eos=True).said() == " gate fare lane tram"


async def test_the_answer_of_a_call_that_names_no_limit_has_the_models_own(triton: TritonServer) -> None:
    async with serving(triton, ["completion"], model_name="ensemble", max_output_tokens=5) as driver:
        assert len((await driver.complete("hello").said()).split()) == 5


async def test_the_phases_add_up_to_the_time_it_took(slow: Driver) -> None:
    began = time.perf_counter()
    attempt = slow.chat(max_tokens=10)
    await attempt.text()
    took_us = (time.perf_counter() - began) * 1e6
    phases = attempt.run.phases
    assert phases.forward_us >= 0.2e6
    assert phases.preprocess_us > 0
    assert phases.transfer_us > 0
    total = phases.preprocess_us + phases.transfer_us + phases.forward_us
    assert 0.9 * took_us < total <= took_us
    assert attempt.run.forward_began


@pytest.mark.parametrize(
    ("stop", "text"),
    [("lane", " gate fare "), ([" lane", "never"], " gate fare"), (["tram", "re la"], " gate fa")],
)
async def test_an_answer_ends_before_its_stop_text(driver: Driver, stop: str | list[str], text: str) -> None:
    """The model leaves a stop word in its text, and does not see one that begins within a token."""
    attempt = driver.complete("hello", stream=True, max_tokens=8, stop=stop)
    (choice,) = (await attempt.text()).choices
    assert (choice.text, choice.finish_reason) == (text, "stop")
    assert "".join(delta.text for delta in attempt.deltas) == choice.text
    assert 2 <= attempt.run.units.output_tokens <= 8


async def test_a_stop_text_that_only_we_see_stops_the_model(slow: Driver, triton: TritonServer) -> None:
    attempt = slow.complete("hello", max_tokens=500, stop="re la")
    assert await attempt.said() == " gate fa"
    assert (await eventually(triton, attempt, "cancelled"))["tokens"] < 100


async def test_stop_texts_of_the_catalog_end_every_answer(triton: TritonServer) -> None:
    async with serving(triton, ["completion"], model_name="ensemble", stop=["tram"]) as driver:
        assert await driver.complete("hello", max_tokens=9).said() == " gate fare lane "
        assert await driver.complete("hello", max_tokens=9, stop="fare").said() == " gate "


async def test_choices_differ_and_are_counted_together(driver: Driver, triton: TritonServer) -> None:
    attempt = driver.chat(stream=True, n=3, max_tokens=12, temperature=1, seed=7)
    choices = (await attempt.text()).choices
    assert len({choice.text for choice in choices}) == 3
    for index, choice in enumerate(choices):
        assert "".join(delta.text for delta in attempt.deltas if delta.choice == index) == choice.text
    assert attempt.run.units.output_tokens == 36
    assert attempt.run.units.input_tokens == 4
    seeds = [line["inputs"]["seed"] for line in triton.diary(attempt.id) if line["event"] == "begun"]
    assert sorted(seeds) == [[7], [8], [9]]


async def test_a_seed_repeats_an_answer(driver: Driver) -> None:
    first, again, other = [
        await driver.complete("hello", max_tokens=12, temperature=0.9, seed=seed).said() for seed in (1, 1, -5)
    ]
    assert first == again != other


async def test_sampling_is_what_the_caller_asked_for(driver: Driver, triton: TritonServer) -> None:
    attempt = driver.complete(
        "hello", max_tokens=2, temperature=0.5, top_k=20, repetition_penalty=1.5, presence_penalty=0.25, min_tokens=1
    )
    await attempt.text()
    got = sent(triton, attempt)
    assert (got["temperature"], got["top_k"], got["min_tokens"]) == ([0.5], [20], [1])
    assert (got["repetition_penalty"], got["presence_penalty"]) == ([1.5], [0.25])
    assert "top_p" not in got
    plain = driver.complete("hello", max_tokens=2)
    await plain.text()
    assert {"temperature", "top_p", "top_k", "seed"} & set(sent(triton, plain)) == set()


async def test_a_temperature_alone_draws_from_all_tokens_and_zero_takes_the_likeliest(
    driver: Driver, triton: TritonServer
) -> None:
    warm, cold = driver.complete("a", max_tokens=8, temperature=1), driver.complete("a", max_tokens=8, temperature=0)
    await warm.text()
    assert await cold.said() == GREEDY[: len(" gate fare lane tram line card zone ride")]
    assert sent(triton, warm)["top_p"] == [1.0]
    assert sent(triton, cold)["top_k"] == [1]
    assert "temperature" not in sent(triton, cold)


async def test_an_echo_repeats_the_prompt(driver: Driver) -> None:
    attempt = driver.complete("hello", stream=True, max_tokens=1, echo=True)
    assert await attempt.said() == "hello gate"
    assert [(delta.text, delta.tokens) for delta in attempt.deltas][:2] == [("hello", 0), (" gate", 1)]


async def test_a_cancelled_request_stops_the_server(slow: Driver, triton: TritonServer) -> None:
    attempt = slow.chat(stream=True, n=2, max_tokens=500, temperature=1)
    await attempt.produced(8)
    assert slow.engine.capacity() == 2
    attempt.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt.task
    counted = attempt.run.units.output_tokens
    assert slow.engine.capacity() == 4
    for part in range(2):
        async with asyncio.timeout(PATIENCE_S):
            while not [line for line in triton.diary(f"{attempt.id}-1-{part}") if line["event"] == "cancelled"]:
                await asyncio.sleep(0.02)
    made = sum(line["tokens"] for line in triton.diary(attempt.id) if line["event"] == "cancelled")
    assert 8 <= counted <= made < 200
    assert attempt.run.units.output_tokens == counted


async def test_requests_run_at_once(slow: Driver) -> None:
    began = time.perf_counter()
    attempts = [slow.complete("hello", max_tokens=20) for _ in range(4)]
    await asyncio.sleep(0)
    assert slow.engine.capacity() == 0
    for attempt in attempts:
        assert len((await attempt.said()).split()) == 20
    assert time.perf_counter() - began < 4 * 0.4


async def test_a_long_prompt_is_made_apart_from_the_event_loop(driver: Driver) -> None:
    attempt = driver.complete("hello " * 1500, max_tokens=1)
    await attempt.text()
    assert attempt.run.units.input_tokens == 1500


async def test_a_prompt_that_is_too_long_for_the_model_is_refused_in_our_words(driver: Driver) -> None:
    with pytest.raises(RefusedInput, match=r"^The prompt and the answer that is asked for are too long"):
        await driver.complete("hello " * 2500).text()


async def test_a_failure_in_the_middle_is_an_error_that_quotes_nothing(driver: Driver) -> None:
    attempt = driver.complete("fail after 3", stream=True, max_tokens=9)
    with pytest.raises(EngineError) as raised:
        await attempt.text()
    assert "fail after" not in str(raised.value)
    assert attempt.run.units.output_tokens == 3
    assert await driver.complete("hello", max_tokens=1).said() == " gate"


async def test_one_choice_that_fails_stops_the_others(slow: Driver, triton: TritonServer) -> None:
    attempt = slow.complete("fail after 2", n=2, max_tokens=300, temperature=1)
    with pytest.raises(EngineError):
        await attempt.text()
    assert slow.engine.capacity() == 4


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"min_p": 0.1}, "min_p"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"n": 2, "temperature": 0}, "n"),
        ({"max_tokens": 3, "min_tokens": 4}, "min_tokens"),
        ({"messages": [{"role": "tool", "content": "1", "tool_call_id": "x"}]}, "tools"),
    ],
)
async def test_what_the_model_cannot_do_is_refused_by_name(driver: Driver, given: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedInput, match=field):
        await driver.chat(**given).text()


async def test_a_model_of_an_old_release_is_served_with_what_it_has(triton: TritonServer) -> None:
    async with serving(triton, ["completion"], model_name="old", token_counts="none") as driver:
        attempt = driver.complete("hello", max_tokens=4, seed=3, temperature=0.7, stop=["never"])
        assert len((await attempt.said()).split()) == 4
        got = sent(triton, attempt)
        assert got["random_seed"] == [3]
        assert got["stop_words"] == ["never"]
        assert (attempt.run.units.input_tokens, attempt.run.units.output_tokens) == (0, 4)
        with pytest.raises(RefusedInput, match="top_p"):
            await driver.complete("hello", top_p=0.5).text()
        with pytest.raises(RefusedInput, match="ignore_eos"):
            await driver.complete("hello", ignore_eos=True).text()


async def test_a_tokenizer_counts_where_the_model_does_not(triton: TritonServer, tmp_path: Path) -> None:
    source = str(write_tokenizer(tmp_path / "words"))
    async with serving(triton, ["chat"], source, model_name="old", context_tokens=16) as driver:
        attempt = driver.chat(stream=True, max_tokens=5)
        (choice,) = (await attempt.text()).choices
        assert (len(choice.text.split()), choice.finish_reason) == (5, "length")
        assert sent(triton, attempt)["text_input"] == ["<s> [user] hello there [assistant]"]
        assert (attempt.run.units.input_tokens, attempt.run.units.output_tokens) == (5, 5)
        assert driver.states["m"].context_tokens == 16
        shortened = driver.chat(max_tokens=500)
        assert len((await shortened.said()).split()) == 11
        with pytest.raises(RefusedInput, match="16"):
            await driver.chat(messages=[{"role": "user", "content": "hello " * 20}]).text()


async def test_a_model_that_answers_in_one_piece_is_counted_by_its_own_word(triton: TritonServer) -> None:
    async with serving(triton, ["completion"], model_name="whole", load=True) as driver:
        attempt = driver.complete("hello", stream=True, max_tokens=6)
        (choice,) = (await attempt.text()).choices
        assert (len(choice.text.split()), choice.finish_reason) == (6, "length")
        assert attempt.run.units.output_tokens == 6
        assert sent(triton, attempt)["stream"] == [False]


async def test_constants_go_with_every_request(triton: TritonServer) -> None:
    constants = {"end_id": 2, "bad_words": ["curse", "oath"], "top_k": 5}
    async with serving(triton, ["completion"], model_name="ensemble", constants=constants) as driver:
        attempt = driver.complete("hello", max_tokens=1, top_k=7)
        await attempt.text()
        got = sent(triton, attempt)
        assert (got["end_id"], got["bad_words"], got["top_k"]) == ([2], ["curse", "oath"], [5])
