"""The protocol `replicate`, against a stand-in for its API."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.contract.events import Choice, Segment, TextOutput, TranscriptOutput
from gateway.contract.inputs.text import Message
from gateway.contract.tasks import Task
from tests.engines.upstream.driver import Driver, driving, model, upload
from tests.engines.upstream.several import holds
from tests.media.samples import picture, sound
from tests.upstreams.replicate import PATH, PIECES, Plan, Replicate, events, problem
from tests.upstreams.serving import Reply, standing

LLAMA = "meta/meta-llama-3-70b-instruct"
FLUX = "black-forest-labs/flux-schnell"
VERSION = "video8b0cf2f3"
VERSIONED = f"me/maker:{VERSION}"
MODELS = (
    model("flux", "text-to-image", "image-edit", "image-blend", wire=FLUX, go_fast=True),
    model("clip", "text-to-video", "image-to-video", wire=VERSIONED),
    model("mine", "text-to-video", wire="deployments/me/my-video"),
    model("tts", "text-to-speech", "voice-clone", wire="me/tts"),
    model("music", "music", wire="me/music"),
    model("whisper", "speech-to-text", wire="openai/whisper"),
    model("llama", "chat", "completion", wire=LLAMA),
    model("gone", "text-to-image", wire="me/no-such"),
)
PICTURE, TONE = picture(64, 48), sound("mp3", "libmp3lame", 2)
IMAGE = upload(PICTURE, "image/png", width=64, height=48)
HEARD = upload(TONE, "audio/mpeg", blob="heard", duration_ms=2000)
FILES = {"in": PICTURE, "heard": TONE}

WHOLE = "".join(PIECES)


@pytest.fixture(scope="module")
def server() -> Iterator[Replicate]:
    stand_in = Replicate()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def replicate(server: Replicate) -> Replicate:
    server.plans.clear()
    server.faults.clear()
    server.seen.clear()
    return server


@pytest.fixture
async def driver(replicate: Replicate, tmp_path: Path) -> AsyncIterator[Driver]:
    async with driving("replicate", replicate, tmp_path, *MODELS, path=PATH) as made:
        yield made


def messages(*turns: tuple[str, str]) -> list[Any]:
    """Make a conversation."""
    return [msgspec.convert({"role": role, "content": text}, Message) for role, text in turns]


ASK = messages(("user", "Tell me a story"))


TASKS: list[tuple[str, Task, dict[str, Any], str]] = [
    ("flux", "text-to-image", {"prompt": "a hill"}, "image/png"),
    ("flux", "image-edit", {"prompt": "a hill", "image": IMAGE}, "image/png"),
    ("flux", "image-blend", {"images": [IMAGE, IMAGE]}, "image/png"),
    ("clip", "text-to-video", {"prompt": "a hill", "seconds": 5}, "video/mp4"),
    ("mine", "text-to-video", {"prompt": "a hill"}, "video/mp4"),
    ("clip", "image-to-video", {"image": IMAGE}, "video/mp4"),
    ("tts", "text-to-speech", {"input": "Hello"}, "audio/mpeg"),
    ("tts", "voice-clone", {"input": "Hello", "sample": HEARD}, "audio/mpeg"),
    ("music", "music", {"prompt": "slow"}, "audio/mpeg"),
]


@pytest.mark.parametrize(("name", "task", "given", "media_type"), TASKS)
async def test_each_task_is_served_and_measured(
    driver: Driver, name: str, task: Task, given: dict[str, Any], media_type: str
) -> None:
    attempt = driver.start(name, task, **given, files=dict(FILES))
    main = (await attempt.files())[0]
    assert main.media_type == media_type
    units = attempt.units
    assert (units.images, units.video_ms, units.audio_ms) == {
        "image/png": (1, 0, 0), "video/mp4": (0, 1000, 0), "audio/mpeg": (0, 0, main.duration_ms),
    }[media_type]  # fmt: skip
    assert attempt.step.cost_nanos is None, "seconds of a machine are no money"


@pytest.mark.parametrize(
    ("name", "path", "version"),
    [("flux", f"/models/{FLUX}/predictions", None), ("clip", "/predictions", VERSION),
     ("mine", "/deployments/me/my-video/predictions", None)],
)  # fmt: skip
async def test_each_form_of_a_models_name_has_its_path(
    driver: Driver, replicate: Replicate, name: str, path: str, version: str | None
) -> None:
    task: Task = "text-to-image" if name == "flux" else "text-to-video"
    await driver.start(name, task, prompt="a hill").output()
    [asked] = replicate.asked("POST", PATH)
    assert asked.path == PATH + path
    assert asked.json().get("version") == version


async def test_fields_and_a_held_answer(driver: Driver, replicate: Replicate) -> None:
    replicate.plans[FLUX] = Plan(looks=0)
    await driver.start("flux", "text-to-image", prompt="a hill", n=2, size="640x480", seed=7).output()
    [asked] = replicate.asked("POST", PATH)
    assert asked.json()["input"] == {
        "prompt": "a hill", "num_outputs": 2, "width": 640, "height": 480, "seed": 7, "go_fast": True,
    }  # fmt: skip
    assert asked.headers["prefer"] == "wait=5"
    assert replicate.asked("GET", f"{PATH}/predictions") == [], "what was made within seconds is not looked at"


async def test_a_deadline_goes_along_and_a_long_job_is_not_held(driver: Driver, replicate: Replicate) -> None:
    attempt = driver.request("clip", "text-to-video", {"prompt": "a hill"}, deadline_s=90)
    await attempt.output()
    [asked] = replicate.asked("POST", PATH)
    assert asked.headers["cancel-after"] in ("90", "91")
    assert "prefer" not in asked.headers


async def test_small_files_go_inside_and_large_ones_are_uploaded(driver: Driver, replicate: Replicate) -> None:
    await driver.start("flux", "image-edit", prompt="a hill", image=IMAGE, files=dict(FILES)).output()
    assert replicate.asked("POST", PATH)[0].json()["input"]["image"].startswith("data:image/png;base64,")
    replicate.seen.clear()
    large = PICTURE + bytes(300_000)
    image = upload(large, "image/png", width=64, height=48)
    await driver.start("flux", "image-edit", prompt="a hill", image=image, files={"in": large}).output()
    uploaded, bought = replicate.asked("POST", PATH)
    assert uploaded.path == f"{PATH}/files"
    assert bought.json()["input"]["image"].startswith(f"{replicate.url}{PATH}/files/")
    assert large in replicate.uploads.values()


async def test_a_transcript_is_read(driver: Driver) -> None:
    attempt = driver.start("whisper", "speech-to-text", file=HEARD, files=dict(FILES))
    output = await attempt.output()
    assert isinstance(output, TranscriptOutput)
    assert (output.text, output.language) == ("Hello there", "english")
    assert output.segments == [Segment(0, 1500, "Hello"), Segment(1500, 2000, "there")]
    assert attempt.units.audio_ms == 2000


OUTPUTS: list[Any] = ["{file}", ["{file}"], {"image": "{file}"}, {"images": ["{file}"]}]


@pytest.mark.parametrize("output", OUTPUTS, ids=["text", "list", "object", "listed"])
async def test_each_shape_of_an_output_is_read(driver: Driver, replicate: Replicate, output: Any) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(each) for each in value]
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        return value.format(file=replicate.file("picture.png"))

    replicate.plans[FLUX] = Plan(output=filled(output))
    assert (await driver.start("flux", "text-to-image", prompt="a hill").picture()).width == 64


FAILURES = [
    (Plan(status="failed", error="NSFW content detected. Try running it again."), "blocked"),
    (Plan(status="failed", error="Prediction interrupted; please retry (code: PA)"), "upstream_error"),
    (Plan(status="failed", error="CUDA out of memory"), "upstream_error"),
    (Plan(status="canceled"), "upstream_error"),
    (Plan(status="aborted"), "upstream_error"),
    (Plan(status="failed", error="Rate limit exceeded"), "upstream_limited"),
    (Plan(output={"input": "http://127.0.0.2/x.png"}), "upstream_error"),
]


@pytest.mark.parametrize(("plan", "reason"), FAILURES)
async def test_failed_predictions_are_read_by_their_words(
    driver: Driver, replicate: Replicate, plan: Plan, reason: str
) -> None:
    replicate.plans[FLUX] = plan
    assert await driver.start("flux", "text-to-image", prompt="a hill").reason() == reason


REFUSED: dict[str, tuple[Reply, str]] = {
    "money": (problem(402, "Insufficient credit", "You have insufficient credit to run this model."),
              "upstream_limited"),
    "throttled": (problem(429, "Too many requests", "Request was throttled. Expected available in 1 second."),
                  "upstream_limited"),
    "input": (problem(422, "Input validation failed", "- input: prompt is required"), "refused"),
    "key": (problem(401, "Unauthenticated", "no"), "upstream_error"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
async def test_refusals_are_read(driver: Driver, replicate: Replicate, case: str) -> None:
    reply, reason = REFUSED[case]
    replicate.fail(reply, reply, method="POST")
    failure = await driver.start("flux", "text-to-image", prompt="a hill").error()
    assert getattr(failure, "reason", "refused") == reason


async def test_a_model_that_is_not_there_is_no_fault_of_the_input(driver: Driver) -> None:
    assert await driver.start("gone", "text-to-image", prompt="a hill").reason() == "upstream_error"


async def test_a_stopped_request_cancels_its_prediction(driver: Driver, replicate: Replicate) -> None:
    replicate.plans[VERSION] = Plan(stuck=True)
    attempt = driver.start("clip", "text-to-video", prompt="a hill")
    await holds(lambda: replicate.asked("GET", f"{PATH}/predictions"))
    await attempt.stop()
    await holds(lambda: replicate.predictions[attempt.step.request]["status"] == "canceled")


# Text


async def test_text_streams_from_a_host_that_does_not_get_the_key(driver: Driver, replicate: Replicate) -> None:
    attempt = driver.streamed("llama", "chat", messages=ASK, max_tokens=50)
    assert await attempt.output() == TextOutput([Choice(WHOLE)])
    assert [piece for piece in attempt.said if piece] == PIECES
    assert (attempt.units.input_tokens, attempt.units.output_tokens) == (11, 6)
    assert attempt.step.estimated is False
    [listened] = replicate.asked("GET", "/streams/")
    assert "authorization" not in listened.headers
    assert listened.headers["accept"] == "text/event-stream"


async def test_text_that_nobody_watches_is_looked_at(driver: Driver, replicate: Replicate) -> None:
    attempt = driver.start("llama", "chat", messages=ASK)
    assert await attempt.output() == TextOutput([Choice(WHOLE)])
    assert replicate.asked("GET", "/streams/") == []


STREAMS: dict[str, list[bytes]] = {
    "broken off": [*events(*PIECES[:2])[:-1], b"!"],
    "error": events(*PIECES[:1], end="error"),
    "empty": [],
    "done at once": events(),
}


@pytest.mark.parametrize("case", list(STREAMS))
async def test_what_a_stream_leaves_out_comes_from_the_prediction(
    driver: Driver, replicate: Replicate, case: str
) -> None:
    replicate.plans[LLAMA] = Plan(stream=STREAMS[case], looks=2)
    attempt = driver.streamed("llama", "chat", messages=ASK)
    assert await attempt.output() == TextOutput([Choice(WHOLE)])
    assert "".join(attempt.said) == WHOLE


async def test_a_model_without_a_stream_is_followed_by_looking(driver: Driver, replicate: Replicate) -> None:
    replicate.plans[LLAMA] = Plan(streams=False, looks=3)
    attempt = driver.streamed("llama", "completion", prompt="Once")
    await attempt.output()
    assert "".join(attempt.said) == WHOLE
    assert len([piece for piece in attempt.said if piece]) >= 2, "what was written is said before the end"


async def test_a_stream_that_differs_from_the_whole_is_a_failure(driver: Driver, replicate: Replicate) -> None:
    replicate.plans[LLAMA] = Plan(stream=events("Something", " else"))
    assert await driver.streamed("llama", "chat", messages=ASK).reason() == "upstream_error"


@pytest.mark.parametrize("metrics", [{}, {"input_token_count": "x"}, {"input_token_count": 3, "output_token_count": 0}])
async def test_missing_tokens_are_estimated_and_never_taken_for_zero(
    driver: Driver, replicate: Replicate, metrics: dict[str, Any]
) -> None:
    replicate.plans[LLAMA] = Plan(metrics=metrics)
    attempt = driver.start("llama", "chat", messages=ASK)
    await attempt.output()
    assert attempt.step.estimated is True
    assert attempt.units.input_tokens >= 3
    assert attempt.units.output_tokens >= 5


async def test_a_conversation_is_written_as_one_prompt(driver: Driver, replicate: Replicate) -> None:
    turns = messages(("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Why?"))
    await driver.start("llama", "chat", messages=turns, temperature=0.5).output()
    given = replicate.asked("POST", PATH)[0].json()["input"]
    assert given == {"system_prompt": "Be brief.", "prompt": "User: Hi\n\nAssistant: Hello\n\nUser: Why?\n\nAssistant:",
                     "temperature": 0.5}  # fmt: skip


async def test_a_stopped_text_is_cancelled_and_what_was_written_counted(driver: Driver, replicate: Replicate) -> None:
    replicate.plans[LLAMA] = Plan(stuck=True, stream=[*events(*PIECES[:3])[:-1], b"~"])
    attempt = driver.streamed("llama", "chat", messages=ASK)
    await holds(lambda: len([piece for piece in attempt.said if piece]) == 3)
    await attempt.stop()
    await holds(lambda: replicate.predictions[attempt.step.request]["status"] == "canceled")
    assert attempt.units.output_tokens >= 3
    assert attempt.units.input_tokens >= 3


async def test_failed_texts_are_read_by_their_words(driver: Driver, replicate: Replicate) -> None:
    replicate.plans[LLAMA] = Plan(status="failed", error="The request was flagged: content policy violation")
    assert await driver.start("llama", "chat", messages=ASK).reason() == "blocked"
