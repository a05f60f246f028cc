"""Workflows that do not go well: steps that fail, callers who leave, workers that are lost."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from gateway.contract.events import Ended, TextOutput
from gateway.contract.inputs import ChatInput, TalkingHeadInput
from gateway.contract.inputs.text import Message
from gateway.contract.phases import Phases
from gateway.contract.pools import ServedModel
from gateway.contract.units import Units
from tests.unit.workers.workflow.conftest import FLOWS, STEPS, flow
from tests.unit.workers.workflow.test_runs import FILM, TALKING, VOICE
from workers.engines.workflow import ask as ask_module

if TYPE_CHECKING:
    from tests.unit.workers.workflow.conftest import Scene

WRITER = ServedModel(name="writer", tasks=["chat"], options={"tokens": 3})
PATIENT = ServedModel(name="patient", tasks=["chat"], options={"tokens": 80, "interval_ms": 20})


def says(model: str, text: str) -> dict[str, Any]:
    return {"model": model, "task": "chat", "input": {"messages": [{"role": "user", "content": text}]}}


def chat(text: str) -> ChatInput:
    return ChatInput(messages=[Message(role="user", content=text)])


MANY = 9000
ENDLESS = flow(
    "two", "chat", "second", first=says("writer", "one"), second=says("patient", f"fake:tokens={MANY} ${{first.text}}")
)
TWO = flow("two", "chat", "second", first=says("writer", "one"), second=says("patient", "after ${first.text}"))


def outcomes(end: Ended) -> list[tuple[str, str, str]]:
    return [(step.name, step.outcome, step.reason) for step in end.steps]


@pytest.mark.parametrize(
    ("switch", "reason", "words"),
    [
        ("fake:fail", "engine_error", "Step second (writer) failed: The fake engine was told to fail."),
        ("fake:refuse", "refused_by_engine", "Step second (writer): The fake engine was told to refuse this."),
    ],
)
async def test_a_failed_step_fails_the_request_and_is_named(
    scene: "Scene", switch: str, reason: str, words: str
) -> None:
    graph = flow(
        "two", "chat", "second", first=says("writer", "one"), second=says("writer", f"{switch} ${{first.text}}")
    )
    await scene.serve(STEPS, WRITER)
    await scene.serve(FLOWS, graph, engine="workflow")
    end = await scene.ended(await scene.submit("two", "chat", chat("hi")))
    assert (end.outcome, end.reason, end.detail) == ("failed", reason, words)
    assert outcomes(end) == [("first", "succeeded", "done"), ("second", "failed", reason)]
    assert end.output is None


async def test_an_input_that_a_step_cannot_take_is_refused_with_the_step(scene: "Scene") -> None:
    await scene.serve(STEPS, VOICE, FILM)
    await scene.serve(FLOWS, TALKING, engine="workflow")
    end = await scene.ended(await scene.submit("head", "talking-head", TalkingHeadInput(image=await scene.picture())))
    assert (end.outcome, end.reason) == ("failed", "refused_by_engine")
    assert end.detail.startswith("Step speech (voice): Object missing required field `input`")
    assert end.steps == []


async def test_a_step_that_fails_stops_those_beside_it(scene: "Scene") -> None:
    graph = flow(
        "both", "chat", "sum",
        one=says("writer", "fake:fail"), two=says("patient", "fake:tokens=9000"),
        sum=says("writer", "${one.text} ${two.text}"),
    )  # fmt: skip
    await scene.serve(STEPS, WRITER, PATIENT)
    await scene.serve(FLOWS, graph, engine="workflow")
    end = await scene.ended(await scene.submit("both", "chat", chat("hi")))
    assert end.detail == "Step one (writer) failed: The fake engine was told to fail."
    assert ("two", "cancelled", "cancelled_by_caller") in outcomes(end)
    assert scene.children() == []


async def test_a_step_whose_workers_are_lost_too_often_fails_the_request(scene: "Scene") -> None:
    hanging = ServedModel(name="writer", tasks=["chat"], options={"behaviour": "hang"})
    await scene.serve(STEPS, hanging)
    await scene.serve(FLOWS, flow("one", "chat", "only", only=says("writer", "hi")), engine="workflow")
    request_id = await scene.submit("one", "chat", chat("hi"))
    for _ in range(3):
        await scene.until(lambda: bool(scene.queues.state(STEPS).leases))
        await scene.expire(STEPS)
    end = await scene.ended(request_id)
    assert (end.outcome, end.reason) == ("failed", "engine_error")
    assert end.detail == (
        "Step only (writer) failed: The workers that took this request were lost before they finished it."
    )
    assert outcomes(end) == [("only", "failed", "worker_lost")]


async def test_cancelling_stops_the_running_step_at_once(scene: "Scene") -> None:
    await scene.serve(STEPS, WRITER, PATIENT)
    await scene.serve(FLOWS, ENDLESS, engine="workflow")
    for _ in range(3):
        request_id = await scene.submit("two", "chat", chat("hi"))
        await scene.until(lambda: any(one.model == "patient" for one in scene.children()))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        assert await scene.cancel(request_id) == "told"
        await scene.until(lambda: scene.children() == [])
        took_s = time.monotonic() - began
        end = await scene.ended(request_id)
        assert (end.outcome, end.reason, end.forward_began) == ("cancelled", "cancelled_by_caller", True)
        assert outcomes(end) == [("first", "succeeded", "done"), ("second", "cancelled", "cancelled_by_caller")]
        assert 0 < end.units.output_tokens < MANY
        if took_s < 1.0:  # else the machine may have paused
            return
    raise AssertionError("it does not stop at once")


async def test_cancelling_takes_a_waiting_step_out_of_its_queue(scene: "Scene") -> None:
    graph = flow("one", "chat", "only", only=says("writer", "hi") | {"pools": {"slow": 1}})
    await scene.serve(FLOWS, graph, engine="workflow")
    request_id = await scene.submit("one", "chat", chat("hi"))
    await scene.until(lambda: len(scene.children("slow")) == 1)
    await scene.cancel(request_id)
    end = await scene.ended(request_id)
    assert scene.children("slow") == []
    assert (end.outcome, end.forward_began) == ("cancelled", False)
    assert outcomes(end) == [("only", "cancelled", "cancelled_by_caller")]


async def test_what_a_stopped_workflow_had_made_is_removed(scene: "Scene") -> None:
    film = ServedModel(name="film", tasks=["image-to-video"], options={"steps": 30, "interval_ms": 200})
    await scene.serve(STEPS, VOICE, film)
    await scene.serve(FLOWS, TALKING, engine="workflow")
    given = TalkingHeadInput(image=await scene.picture(), text="Hello.")
    request_id = await scene.submit("head", "talking-head", given)
    await scene.until(lambda: len(scene.files()) == 2)
    await scene.cancel(request_id)
    await scene.ended(request_id)
    await scene.until(lambda: len(scene.files()) == 1)


async def test_a_deadline_ends_the_workflow_and_its_steps(scene: "Scene") -> None:
    await scene.serve(STEPS, WRITER, PATIENT)
    await scene.serve(FLOWS, ENDLESS, engine="workflow")
    request_id = await scene.submit("two", "chat", chat("hi"), deadline_ms=int(time.time() * 1000) + 900)
    end = await scene.ended(request_id)
    assert (end.outcome, end.reason) == ("expired", "deadline")
    await scene.until(lambda: scene.children() == [])
    assert {name for name, outcome, _ in outcomes(end) if outcome == "succeeded"} <= {"first"}


async def test_the_next_attempt_takes_over_what_the_lost_one_had(scene: "Scene") -> None:
    """A finished step is not run again, and one that runs is waited for."""
    await scene.serve(STEPS, WRITER, PATIENT)
    await scene.serve(FLOWS, TWO, engine="workflow")
    request_id = await scene.submit("two", "chat", chat("hi"))
    await scene.until(lambda: any(one.model == "patient" for one in scene.children()))
    [running] = scene.children()
    await scene.expire(FLOWS)
    end = await scene.ended(request_id)
    assert (end.outcome, end.attempt) == ("succeeded", 2)
    assert [step.name for step in end.steps] == ["first", "second"]
    assert end.steps[1].request == running.id
    assert [step.attempt for step in end.steps] == [1, 1]
    logs = scene.queues.state(STEPS).logs
    assert set(logs) == {step.request for step in end.steps}  # no other step was ever asked for
    assert isinstance(end.output, TextOutput)


async def test_a_drained_worker_leaves_its_steps_to_the_next(scene: "Scene") -> None:
    await scene.serve(STEPS, WRITER, PATIENT)
    await scene.serve(FLOWS, TWO, engine="workflow", drain_s=0.2)
    request_id = await scene.submit("two", "chat", chat("hi"))
    await scene.until(lambda: any(one.model == "patient" for one in scene.children()))
    [running] = scene.children()
    first, task = scene.running[-1]
    first.stopping.set()
    await task
    assert [one.id for one in scene.children()] == [running.id]
    await scene.expire(FLOWS)
    await scene.start(FLOWS)
    end = await scene.ended(request_id)
    assert (end.outcome, end.steps[-1].request) == ("succeeded", running.id)


async def test_a_step_that_was_stopped_under_an_earlier_attempt_runs_again(scene: "Scene") -> None:
    await scene.serve(STEPS, WRITER, PATIENT)
    await scene.serve(FLOWS, TWO, engine="workflow")
    request_id = await scene.submit("two", "chat", chat("hi"))
    await scene.until(lambda: any(one.model == "patient" for one in scene.children()))
    [running] = scene.children()
    await scene.expire(FLOWS)
    stop = Ended(running.id, 0, "cancelled", "cancelled_by_caller", Units(), Phases(), 0, parent=request_id)
    assert await scene.queues.pool(STEPS).cancel(stop) == "told"
    end = await scene.ended(request_id)
    assert end.outcome == "succeeded"
    assert end.steps[-1].request != running.id


async def test_a_step_that_its_queue_has_lost_is_asked_for_again(
    scene: "Scene", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_module, "LOOK_S", 0.1)
    graph = flow("one", "chat", "only", only=says("writer", "hi") | {"pools": {"slow": 1}})
    await scene.serve(FLOWS, graph, engine="workflow")
    request_id = await scene.submit("one", "chat", chat("hi"))
    await scene.until(lambda: len(scene.children("slow")) == 1)
    state = scene.queues.state("slow")
    for lost in (state.jobs, state.queue, state.places):
        lost.clear()
    await scene.until(lambda: len(scene.children("slow")) == 1)
    await scene.serve("slow", WRITER)
    assert (await scene.ended(request_id)).outcome == "succeeded"
