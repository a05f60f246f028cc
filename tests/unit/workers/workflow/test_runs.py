"""Workflows that run: what their steps are given, what comes of them, and what is told of it."""

import time
from typing import TYPE_CHECKING

import pytest

from gateway.contract.events import GalleryOutput, MediaOutput, Progress, TextDelta, TextOutput, media_of
from gateway.contract.inputs import ChatInput, ImageInput, Media, SpeechInput, TalkingHeadInput, VideoInput
from gateway.contract.inputs.text import Message
from gateway.contract.pools import ServedModel
from tests.unit.workers.workflow.conftest import FLOWS, STEPS, flow

if TYPE_CHECKING:
    from tests.unit.workers.workflow.conftest import Scene

pytest.importorskip("av")

VOICE = ServedModel(name="voice", tasks=["text-to-speech"])
FILM = ServedModel(name="film", tasks=["image-to-video"], options={"steps": 3})
WRITER = ServedModel(name="writer", tasks=["chat"], options={"tokens": 6})
PAINTER = ServedModel(name="painter", tasks=["text-to-image"])
ENLARGER = ServedModel(name="enlarger", tasks=["image-upscale"])

TALKING = flow(
    "head",
    "talking-head",
    "join",
    speech={"model": "voice", "task": "text-to-speech", "input": {"input": "$input.text"}},
    film={
        "model": "film",
        "task": "image-to-video",
        "weight": 3,
        "input": {
            "image": "$input.image",
            "seconds": "$input.audio.duration_s | $speech.duration_s",
            "fps": "$input.fps",
        },
    },
    join={"do": "join", "input": {"video": "$film.media", "audio": "$input.audio | $speech.media"}},
)


def chat(text: str) -> ChatInput:
    return ChatInput(messages=[Message(role="user", content=text)])


async def test_a_head_talks_for_as_long_as_its_text_takes(scene: "Scene") -> None:
    await scene.serve(STEPS, VOICE, FILM)
    await scene.serve(FLOWS, TALKING, engine="workflow")
    given = TalkingHeadInput(image=await scene.picture(), text="x" * 30, fps=10)
    end = await scene.ended(await scene.submit("head", "talking-head", given))
    assert (end.outcome, end.reason, end.price) == ("succeeded", "done", 7)
    video, *stills = media_of(end.output)
    assert (video.media_type, video.width, video.height, video.duration_ms) == ("video/mp4", 64, 48, 1500)
    assert [item.role for item in stills] == ["thumbnail", "spritesheet"]
    assert [(step.name, step.model, step.pool, step.attempt, step.outcome) for step in end.steps] == [
        ("speech", "voice", STEPS, 1, "succeeded"),
        ("film", "film", STEPS, 1, "succeeded"),
    ]
    units = end.units
    assert (units.characters, units.audio_ms, units.video_ms, units.steps) == (30, 1500, 1500, 3)
    assert units.pixels == 15 * 64 * 48


async def test_only_the_workflows_own_output_is_left_of_it(scene: "Scene") -> None:
    await scene.serve(STEPS, VOICE, FILM)
    await scene.serve(FLOWS, TALKING, engine="workflow")
    given = TalkingHeadInput(image=await scene.picture(), text="Hello.")
    request_id = await scene.submit("head", "talking-head", given)
    await scene.ended(request_id)
    await scene.until(lambda: len(scene.files()) == 4)
    assert [name for name in scene.files() if name.startswith(request_id)] == [
        f"{request_id}-1-0.mp4",
        f"{request_id}-1-1.jpg",
        f"{request_id}-1-2.jpg",
    ]
    assert scene.children() == scene.children(FLOWS) == []


async def test_what_is_not_needed_does_not_run(scene: "Scene") -> None:
    """A caller who brings the sound needs no speech."""
    await scene.serve(STEPS, VOICE, FILM)
    await scene.serve(FLOWS, TALKING, engine="workflow")
    image = await scene.picture()
    first = await scene.ended(
        await scene.submit("head", "talking-head", TalkingHeadInput(image=image, text="abcde" * 4))
    )
    sound = first.output.items[0]  # type: ignore[union-attr]
    audio = Media(blob=sound.blob, media_type=sound.media_type, size_bytes=sound.size_bytes, duration_ms=1000)
    end = await scene.ended(await scene.submit("head", "talking-head", TalkingHeadInput(image=image, audio=audio)))
    assert (end.outcome, [step.name for step in end.steps]) == ("succeeded", ["film"])
    assert media_of(end.output)[0].duration_ms == pytest.approx(1000, abs=60)


async def test_a_picture_is_described_drawn_and_enlarged(scene: "Scene") -> None:
    """Texts are put together; the file of the last step becomes the workflow's own."""
    await scene.serve(STEPS, WRITER, PAINTER, ENLARGER)
    graph = flow(
        "poster",
        "text-to-image",
        "large",
        story={
            "model": "writer",
            "task": "chat",
            "input": {"messages": [{"role": "user", "content": "A poster of ${input.prompt}"}]},
        },
        drawn={
            "model": "painter",
            "task": "text-to-image",
            "input": {"prompt": "${story.text}, by night", "size": "32x32", "n": "$input.n"},
        },
        large={"model": "enlarger", "task": "image-upscale", "input": {"image": "$drawn.media", "scale": 2}},
    )
    await scene.serve(FLOWS, graph, engine="workflow")
    request_id = await scene.submit("poster", "text-to-image", ImageInput(prompt="a gate"))
    end = await scene.ended(request_id)
    [image] = media_of(end.output)
    assert (end.outcome, image.width, image.height) == ("succeeded", 64, 64)
    assert image.blob.rpartition("/")[2].startswith(request_id)
    assert [step.name for step in end.steps] == ["story", "drawn", "large"]
    assert (end.units.images, end.units.pixels, end.units.output_tokens) == (1, 64 * 64, 0)
    await scene.until(lambda: len(scene.files()) == 1)


async def test_steps_that_do_not_need_each_other_run_at_the_same_time(scene: "Scene") -> None:
    slow = ServedModel(name="slow", tasks=["chat"], options={"work_ms": 600, "tokens": 3})
    ask = {"model": "slow", "task": "chat"}
    graph = flow(
        "both",
        "chat",
        "sum",
        one=ask | {"input": {"messages": [{"role": "user", "content": "one"}]}},
        two=ask | {"input": {"messages": [{"role": "user", "content": "two"}]}},
        sum=ask | {"input": {"messages": [{"role": "user", "content": "${one.text} and ${two.text}"}]}},
    )
    await scene.serve(STEPS, slow)
    await scene.serve(FLOWS, graph, engine="workflow")
    began = time.monotonic()
    request_id = await scene.submit("both", "chat", chat("hello"))
    await scene.until(lambda: len(scene.queues.state(STEPS).leases) == 2)
    end = await scene.ended(request_id)
    assert end.outcome == "succeeded"
    assert {step.name for step in end.steps[:2]} == {"one", "two"}
    assert time.monotonic() - began >= 1.2
    assert end.units.input_tokens == 7  # of the step that gave the answer, and of no other


async def test_progress_is_the_wholes_and_phases_are_the_wall_clock(scene: "Scene") -> None:
    film = ServedModel(name="film", tasks=["image-to-video"], options={"steps": 8, "interval_ms": 60})
    await scene.serve(STEPS, VOICE, film)
    await scene.serve(FLOWS, TALKING, engine="workflow")
    image = await scene.picture()
    accounted = []
    for _ in range(3):
        began_us = scene.queues.now_us()
        request_id = await scene.submit("head", "talking-head", TalkingHeadInput(image=image, text="Mind the gap."))
        end = await scene.ended(request_id)
        spent_us = scene.queues.now_us() - began_us
        phases = end.phases
        parts = (phases.queue_us, phases.preprocess_us, phases.transfer_us, phases.forward_us, phases.postprocess_us)
        accounted.append((sum(parts) + phases.store_us) / spent_us)
        if accounted[-1] >= 0.8:  # else the machine may have paused between two parts
            break
    fractions = [event.fraction for event in await scene.events(request_id) if isinstance(event, Progress)]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert len({fraction for fraction in fractions if 0.25 < fraction < 1.0}) >= 6
    assert phases.forward_us > 400_000
    assert phases.postprocess_us > 0
    assert 0.8 <= max(accounted) <= 1.0


async def test_a_caller_who_streams_is_told_the_whole_at_its_end(scene: "Scene") -> None:
    await scene.serve(STEPS, WRITER, VOICE)
    ask = {"model": "writer", "task": "chat", "input": {"messages": [{"role": "user", "content": "hi"}]}}
    say = {"model": "voice", "task": "text-to-speech", "input": {"input": "$input.input"}}
    await scene.serve(
        FLOWS,
        flow("echo", "chat", "answer", answer=ask),
        flow("say", "text-to-speech", "speech", speech=say),
        engine="workflow",
    )
    request_id = await scene.submit("echo", "chat", chat("hi"), stream=True)
    end = await scene.ended(request_id)
    deltas = [event for event in await scene.events(request_id) if isinstance(event, TextDelta)]
    assert isinstance(end.output, TextOutput)
    assert [delta.text for delta in deltas] == [choice.text for choice in end.output.choices]
    assert (deltas[0].tokens, deltas[0].finish_reason) == (6, "stop")
    request_id = await scene.submit("say", "text-to-speech", SpeechInput(input="Hello."), stream=True)
    spoken = await scene.ended(request_id)
    assert isinstance(spoken.output, MediaOutput)
    assert spoken.units.characters == 6


async def test_a_workflow_of_pictures_becomes_a_film_and_a_part_of_it(scene: "Scene") -> None:
    """A local step's file goes into the blob store where a model is to read it."""
    several = {
        "model": "painter",
        "task": "text-to-image",
        "input": {"prompt": "$input.prompt", "n": 4, "size": "32x32"},
    }
    enlarge = ServedModel(name="enlarger", tasks=["video-upscale"])
    graph = flow(
        "show",
        "text-to-video",
        "large",
        stills=several,
        shown={"do": "frames-to-video", "input": {"images": "$stills.items", "fps": 4}},
        part={"do": "trim", "input": {"video": "$shown.media", "start_s": 0.25, "seconds": 0.5}},
        large={"model": "enlarger", "task": "video-upscale", "input": {"video": "$part.media", "scale": 2}},
    )
    await scene.serve(STEPS, PAINTER, enlarge)
    await scene.serve(FLOWS, graph, engine="workflow")
    end = await scene.ended(await scene.submit("show", "text-to-video", VideoInput(prompt="a gate")))
    assert end.outcome == "succeeded", end.detail
    assert isinstance(end.output, GalleryOutput)
    video = end.output.items[0]
    assert (video.width, video.height, video.frames, video.duration_ms) == (64, 64, 2, 500)
    await scene.until(lambda: len(scene.files()) == 3)


async def test_models_whose_graph_is_wrong_say_why(scene: "Scene") -> None:
    here = {"model": "writer", "task": "chat", "input": {}}
    broken = {
        "nowhere": flow("nowhere", "chat", "a", a=here | {"pools": {}}),
        "unknown": flow("unknown", "chat", "a", a=here | {"input": {"messages": "$b.text"}}),
        "circle": flow("circle", "chat", "a", a=here | {"input": {"messages": "$a.text"}}),
        "end": flow("end", "chat", "z", a=here),
        "later": ServedModel(name="later", tasks=["chat"], options={"budget": 1}),
    }
    await scene.serve(FLOWS, *broken.values(), flow("good", "chat", "a", a=here), engine="workflow")
    workers = scene.queues.state(FLOWS).workers
    await scene.until(
        lambda: all(state.state != "loading" for _, one in workers.values() for state in one.models.values())
    )
    [(_, status)] = workers.values()
    states = {name: (state.state, state.detail) for name, state in status.models.items()}
    assert states.pop("good") == ("ready", "")
    assert {state for state, _ in states.values()} == {"failed"}
    assert "no pool here serves writer" in states["nowhere"][1]
    assert "there is no step b" in states["unknown"][1]
    assert "a -> a" in states["circle"][1]
    assert "there is no step z" in states["end"][1]
    assert "budget" in states["later"][1]
