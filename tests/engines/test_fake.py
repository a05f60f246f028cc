"""The engine `fake`: deterministic answers, exact pace, faults on demand."""

import asyncio
import math
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.events import Frame, TextDelta, TextOutput, VectorOutput
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, Input
from gateway.contract.inputs.text import JsonObjectFormat, Message, TextPart
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from workers.engine import EngineError, EngineLost, RefusedInput, Run
from workers.engines.fake.engine import FakeEngine

ANSWER_20 = "the gate opens at dawn and every fare is counted once before it shuts the gate opens at dawn and"


async def engine_with(**options: Any) -> FakeEngine:
    engine = FakeEngine(Path())
    states: dict[str, ModelState] = {}
    await engine.load([ServedModel(name="m", tasks=["chat"], options=options)], states.__setitem__)
    assert states == {"m": ModelState(state="ready")}
    return engine


def prepare(given: Input, *, stream: bool = False, attempt: int = 1) -> tuple[Run, list[tuple[float, Frame]]]:
    """Make a run, and the list of what it will send with the time of each frame."""
    request = Request(new_request_id(), 1, "m", "chat", b"", 1, stream=stream)
    frames: list[tuple[float, Frame]] = []
    return Run(request, given, attempt, lambda _, frame: frames.append((time.perf_counter(), frame))), frames


def chat(text: str = "what opens at dawn", **given: Any) -> ChatInput:
    return ChatInput(messages=[Message(role="user", content=text)], **given)


async def finish(engine: FakeEngine, run: Run) -> TextOutput:
    answer = engine.run(run)
    output = answer if isinstance(answer, TextOutput) else await answer  # type: ignore[misc]
    assert isinstance(output, TextOutput)
    return output


def deltas_of(frames: Sequence[tuple[float, Frame]]) -> list[TextDelta]:
    assert [frame.seq for _, frame in frames] == list(range(len(frames)))
    return [frame.event for _, frame in frames if isinstance(frame.event, TextDelta)]


async def test_it_answers_20_tokens_at_once_always_the_same() -> None:
    engine = await engine_with()
    run, frames = prepare(chat())
    answer = engine.run(run)
    assert isinstance(answer, TextOutput)
    assert answer.choices[0].text == ANSWER_20
    assert answer.choices[0].finish_reason == "stop"
    assert (run.units.input_tokens, run.units.output_tokens) == (4, 20)
    assert run.forward_began
    assert frames == []


async def test_input_tokens_are_the_words_of_all_messages() -> None:
    engine = await engine_with()
    given = ChatInput(
        messages=[
            Message(role="system", content="be  brief\n"),
            Message(role="user", content=[TextPart(text="one two"), TextPart(text="three")]),
            Message(role="assistant", content=None),
        ]
    )
    run, _ = prepare(given)
    await finish(engine, run)
    assert run.units.input_tokens == 5


@pytest.mark.parametrize(
    ("given", "texts", "reasons", "tokens"),
    [
        ({"max_tokens": 3}, ["the gate opens"], ["length"], 3),
        ({"max_completion_tokens": 2, "max_tokens": 9}, ["the gate"], ["length"], 2),
        ({"max_tokens": 20}, [ANSWER_20], ["stop"], 20),
        ({"stop": "dawn"}, ["the gate opens at "], ["stop"], 5),
        ({"stop": [" opens at", "every"]}, ["the gate"], ["stop"], 4),
        ({"stop": "nowhere", "max_tokens": 1}, ["the"], ["length"], 1),
        ({"n": 2, "max_tokens": 2}, ["the gate", "gate opens"], ["length", "length"], 4),
    ],
)
async def test_limits_stops_and_several_choices_are_honoured_and_counted(
    given: dict[str, Any], texts: list[str], reasons: list[str], tokens: int
) -> None:
    engine = await engine_with()
    run, frames = prepare(chat(**given), stream=True)
    output = await finish(engine, run)
    assert [choice.text for choice in output.choices] == texts
    assert [choice.finish_reason for choice in output.choices] == reasons
    assert run.units.output_tokens == tokens
    deltas = deltas_of(frames)
    assert sum(delta.tokens for delta in deltas) == tokens
    for number, text in enumerate(texts):
        assert "".join(delta.text for delta in deltas if delta.choice == number) == text


async def test_logprobs_say_that_each_token_is_certain() -> None:
    engine = await engine_with(tokens=2)
    run, frames = prepare(chat(logprobs=True, top_logprobs=1), stream=True)
    logprobs = (await finish(engine, run)).choices[0].logprobs
    assert logprobs is not None
    assert [(one.token, one.logprob, one.top) for one in logprobs] == [
        ("the", 0.0, [("the", 0.0)]),
        (" gate", 0.0, [(" gate", 0.0)]),
    ]
    assert [delta.logprobs for delta in deltas_of(frames)] == [[one] for one in logprobs]


@pytest.mark.parametrize(
    "given",
    [
        chat(response_format=JsonObjectFormat()),
        chat(tool_choice="required"),
        CompletionInput(prompt="x", echo=True),
        EmbeddingInput(input="x", dimensions=5000),
    ],
)
async def test_what_it_cannot_do_is_refused(given: Input) -> None:
    engine = await engine_with()
    run, _ = prepare(given)
    with pytest.raises(RefusedInput):
        engine.run(run)


async def lateness_s(began: float, count: int) -> list[float]:
    """Measure how late this machine is at so many instants, 10 ms one after the other."""
    late = []
    for due in (began + number * 0.01 for number in range(count)):
        await asyncio.sleep(max(due - time.perf_counter(), 0))
        late.append(time.perf_counter() - due)
    return sorted(late)


async def test_a_stream_keeps_its_interval_and_does_not_drift() -> None:
    """Nothing comes too early, and in the best of three runs hardly anything later than the machine itself is."""
    engine = await engine_with(tokens=40, interval_ms=10)
    delays = []
    for _ in range(3):
        run, frames = prepare(chat(), stream=True)
        began = time.perf_counter()
        output, machine_s = await asyncio.gather(finish(engine, run), lateness_s(began, 40))
        assert len(frames) == 40
        assert "".join(delta.text for delta in deltas_of(frames)) == output.choices[0].text
        late_s = sorted(at - began - number * 0.01 for number, (at, _) in enumerate(frames))
        assert late_s[0] > -0.002
        assert frames[-1][0] - began >= 0.388
        assert run.phases.forward_us >= 388_000
        delays.append(max(frames[0][0] - began - machine_s[-1], late_s[20] - machine_s[20]))
        if delays[-1] < 0.01:
            break
    assert min(delays) < 0.01


async def test_200_streams_at_once_are_all_on_time() -> None:
    engine = await engine_with(tokens=30, interval_ms=10)
    took_s = []
    for _ in range(3):
        runs = [prepare(chat(), stream=True) for _ in range(200)]
        began = time.perf_counter()
        await asyncio.gather(*(finish(engine, run) for run, _ in runs))
        took_s.append(time.perf_counter() - began)
        assert all(len(deltas_of(frames)) == 30 for _, frames in runs)
        assert engine.capacity() == 512
        if took_s[-1] < 1.0:  # else the machine may have paused
            break
    assert min(took_s) < 1.0


async def test_a_cancelled_stream_stops_within_a_step_with_the_tokens_it_had_given() -> None:
    engine = await engine_with(tokens=9000, interval_ms=10)
    counts = []
    for _ in range(3):
        run, frames = prepare(chat(), stream=True)
        task = asyncio.ensure_future(finish(engine, run))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        given = len(frames)
        assert run.units.output_tokens == given > 3
        await asyncio.sleep(0.05)
        assert len(frames) == run.units.output_tokens == given
        assert engine.capacity() == 512
        counts.append(given)
        if given < 20:  # else the machine may have paused
            break
    assert min(counts) < 20


async def test_work_takes_its_time_and_a_slot() -> None:
    engine = await engine_with(work_ms=100, capacity=4)
    took_s = []
    for _ in range(3):
        run, _ = prepare(chat())
        began = time.perf_counter()
        task = asyncio.ensure_future(finish(engine, run))
        await asyncio.sleep(0)
        assert engine.capacity() == 3
        await task
        took_s.append(time.perf_counter() - began)
        assert engine.capacity() == 4
    assert 0.09 < min(took_s) < 0.5


async def test_capacity_is_that_of_the_fullest_model_of_the_pool() -> None:
    engine = FakeEngine(Path())
    assert engine.capacity() == 0
    models = [ServedModel(name=f"m{size}", tasks=["chat"], options={"capacity": size}) for size in (7, 3)]
    await engine.load(models, lambda _, state: None)
    assert engine.capacity() == 3


@pytest.mark.parametrize(("switch", "error"), [("fail", EngineError), ("refuse", RefusedInput), ("lose", EngineLost)])
async def test_a_prompt_asks_for_a_fault(switch: str, error: type[Exception]) -> None:
    engine = await engine_with()
    run, _ = prepare(chat(f"please fake:{switch} now"))
    with pytest.raises(error):
        engine.run(run)
    assert (engine.failure() is not None) == (switch == "lose")


async def test_a_fault_may_be_asked_for_on_the_first_attempts_only() -> None:
    engine = await engine_with()
    second, _ = prepare(chat("fake:fail=2"), attempt=2)
    with pytest.raises(EngineError):
        engine.run(second)
    third, _ = prepare(chat("fake:fail=2"), attempt=3)
    assert (await finish(engine, third)).choices[0].text == ANSWER_20


async def test_a_model_may_be_broken_for_every_request() -> None:
    engine = await engine_with(behaviour="fail")
    run, _ = prepare(chat())
    with pytest.raises(EngineError):
        engine.run(run)


async def test_a_hanging_request_ends_only_when_cancelled() -> None:
    engine = await engine_with()
    run, _ = prepare(chat("fake:hang"))
    task = asyncio.ensure_future(finish(engine, run))
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (run.forward_began, run.units.output_tokens) == (True, 0)


async def test_a_prompt_sets_time_and_length() -> None:
    engine = await engine_with()
    run, _ = prepare(chat("fake:sleep=0.1 fake:tokens=3"))
    began = time.perf_counter()
    assert (await finish(engine, run)).choices[0].text == "the gate opens"
    assert time.perf_counter() - began > 0.09


async def test_embeddings_are_unit_vectors_that_depend_on_the_text_alone() -> None:
    engine = await engine_with(dimensions=8)
    run, _ = prepare(EmbeddingInput(input=["one two", "three", "one two"]))
    output = engine.run(run)
    assert isinstance(output, VectorOutput)
    first, other, again = (array("f", vector) for vector in output.vectors)
    assert (output.dimensions, len(first), run.units.input_tokens) == (8, 8, 5)
    assert first == again
    assert first != other
    assert math.isclose(sum(number * number for number in other), 1, abs_tol=1e-5)
    narrow, _ = prepare(EmbeddingInput(input="one two", dimensions=3))
    output = engine.run(narrow)
    assert isinstance(output, VectorOutput)
    assert output.dimensions == 3


async def test_unknown_options_fail_the_model_and_no_other() -> None:
    engine = FakeEngine(Path())
    states: dict[str, ModelState] = {}
    models = [
        ServedModel(name="bad", tasks=["chat"], options={"token": 20}),
        ServedModel(name="good", tasks=["chat"]),
    ]
    await engine.load(models, states.__setitem__)
    assert states["bad"].state == "failed"
    assert "token" in states["bad"].detail
    assert states["good"].state == "ready"
