"""The protocol `gmi`, against a stand-in with the oddities of the live queue."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.events import GalleryOutput
from gateway.contract.tasks import Task
from tests.engines.upstream.driver import Driver, driving, model, upload
from tests.engines.upstream.several import holds
from tests.media.samples import film, picture, sound
from tests.upstreams.gmi import PATH, Gmi, Plan, inline_picture, inline_sound
from tests.upstreams.serving import Reply, said, standing

MODELS = (
    model("seedream-5.0-lite", "text-to-image", "image-edit", fields={"n": "max_images", "image": "image as list"}),
    model("bria-fibo-edit", "image-edit", fields={"prompt": "instruction", "image": "images as list"}),
    model("bria-fibo-image-blend", "image-blend"),
    model("bria-fibo-relight", "image-relight"),
    model("bria-fibo-restyle", "image-restyle", fields={"prompt": "style"}),
    model("upscale-image", "image-upscale"),
    model("Veo3", "text-to-video", fields={"seconds": "durationSeconds as text", "size": "aspectRatio as ratio"}),
    model("kling-v3-image-to-video", "image-to-video", fields={"seconds": "duration as text"}, sound="off"),
    model("bria-video-increase-resolution", "video-upscale"),
    model("GMI-MiniMeTalks-Workflow", "talking-head"),
    model("elevenlabs-tts-v3", "text-to-speech"),
    model("minimax-audio-voice-clone-speech-2.6-hd", "voice-clone"),
    model("minimax-music-2.5", "music"),
    model("Z-Image", "text-to-image"),
    model("gone", "text-to-image", wire="no-such-model"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Gmi]:
    stand_in = Gmi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def gmi(server: Gmi) -> Gmi:
    server.plans.clear()
    server.seen.clear()
    server.faults.clear()
    server.mp3_type = "audio/mpeg"
    return server


@pytest.fixture
async def driver(gmi: Gmi, tmp_path: Path) -> AsyncIterator[Driver]:
    async with driving("gmi", gmi, tmp_path, *MODELS, path=PATH) as made:
        yield made


def sent(gmi: Gmi) -> dict[str, Any]:
    """Give the payload of the one job that was bought."""
    [asked] = gmi.asked("POST", f"{PATH}/requests")
    payload: dict[str, Any] = asked.json()["payload"]
    return payload


PICTURE = picture(64, 48)
IMAGE = upload(PICTURE, "image/png", width=64, height=48)
FILES = {"in": PICTURE}

TASKS: list[tuple[str, Task, dict[str, Any]]] = [
    ("seedream-5.0-lite", "text-to-image", {"prompt": "a hill"}),
    ("bria-fibo-edit", "image-edit", {"prompt": "a hill", "image": IMAGE}),
    ("bria-fibo-image-blend", "image-blend", {"images": [IMAGE, IMAGE]}),
    ("bria-fibo-relight", "image-relight", {"image": IMAGE}),
    ("bria-fibo-restyle", "image-restyle", {"image": IMAGE, "prompt": "photorealistic"}),
    ("upscale-image", "image-upscale", {"image": IMAGE}),
    ("Veo3", "text-to-video", {"prompt": "a hill", "seconds": 8, "size": "1280x720"}),
    ("kling-v3-image-to-video", "image-to-video", {"image": IMAGE, "seconds": 5}),
    ("GMI-MiniMeTalks-Workflow", "talking-head", {"image": IMAGE, "text": "Hello"}),
    ("elevenlabs-tts-v3", "text-to-speech", {"input": "Hello", "voice": "v1"}),
    ("minimax-music-2.5", "music", {"prompt": "slow", "extra": {"lyrics": "[Instrumental]"}}),
]


@pytest.mark.parametrize(("name", "task", "given"), TASKS, ids=[task for _, task, _ in TASKS])
async def test_each_task_is_served_and_measured_on_what_came(
    driver: Driver, name: str, task: Task, given: dict[str, Any]
) -> None:
    attempt = driver.start(name, task, **given, files=FILES)
    main = (await attempt.files())[0]
    kind = main.media_type.partition("/")[0]
    units = attempt.units
    assert {"image": units.images, "video": units.video_ms, "audio": units.audio_ms}[kind] == {
        "image": 1, "video": main.duration_ms, "audio": main.duration_ms,
    }[kind]  # fmt: skip
    assert units.pixels == main.width * main.height * (main.frames or 1 if kind == "video" else 1) * (kind != "audio")
    assert units.characters == len(given.get("input", "") or given.get("text", ""))
    assert kind == "image" or 900 <= main.duration_ms <= 2100
    step = attempt.step
    assert (step.outcome, step.upstream, step.estimated, step.cost_nanos) == ("succeeded", True, False, None)
    assert step.request, "the id of the job stands in the record of the attempt"


async def test_the_other_two_tasks_send_sound_and_video(driver: Driver, gmi: Gmi) -> None:
    sample, clip = sound("mp3", "libmp3lame", 2), film(16)
    heard = upload(sample, "audio/mpeg", duration_ms=2000)
    spoken = driver.start("minimax-audio-voice-clone-speech-2.6-hd", "voice-clone", input="Hello", sample=heard,
                          files={"in": sample})  # fmt: skip
    assert (await spoken.sound()).duration_ms > 1900
    assert sent(gmi)["source_audio"].startswith(f"{gmi.url}/public/bucket/")
    gmi.seen.clear()
    shown = upload(clip, "video/mp4", duration_ms=1000, width=64, height=64, frames=16)
    larger = driver.start("bria-video-increase-resolution", "video-upscale", video=shown, files={"in": clip})
    assert (await larger.picture()).media_type == "video/mp4"
    assert sent(gmi)["video"].endswith(".mp4")


async def test_fields_go_under_the_names_of_the_route_and_nothing_else_goes(driver: Driver, gmi: Gmi) -> None:
    await driver.start("Veo3", "text-to-video", prompt="a hill", seconds=8.0, size="1280x720", seed=7).output()
    assert sent(gmi) == {"prompt": "a hill", "durationSeconds": "8", "aspectRatio": "16:9", "seed": 7}


async def test_what_the_route_fixes_is_sent(driver: Driver, gmi: Gmi) -> None:
    await driver.start("kling-v3-image-to-video", "image-to-video", image=IMAGE, files=FILES).output()
    assert sent(gmi)["sound"] == "off"


async def test_a_job_that_is_complete_in_the_post_is_not_looked_at(driver: Driver, gmi: Gmi) -> None:
    files = await driver.start("seedream-5.0-lite", "text-to-image", prompt="a hill", n=3).files()
    assert [(each.width, each.height) for each in files] == [(64, 48)] * 3
    assert gmi.asked("GET", f"{PATH}/requests") == []


async def test_a_video_brings_its_thumbnail_and_does_without_one_that_is_gone(driver: Driver, gmi: Gmi) -> None:
    output = await driver.start("Veo3", "text-to-video", prompt="a hill").output()
    assert isinstance(output, GalleryOutput)
    assert [each.role for each in output.items] == ["", "thumbnail"]
    gmi.plans["Veo3"] = Plan(outcome={"video_url": gmi.file("film.mp4"), "thumbnail_image_url": gmi.file("none.png")})
    attempt = driver.start("Veo3", "text-to-video", prompt="a hill")
    assert [each.role for each in await attempt.files()] == [""]
    assert attempt.units.images == 0


def outcomes(gmi: Gmi) -> dict[str, tuple[str, Any]]:
    """Give the outcomes that clients have recorded."""
    clip, tone = gmi.file("film.mp4"), gmi.file("sound.mp3")
    return {
        "video in media_urls": (
            "Veo3",
            {"media_urls": [{"id": "0", "url": clip}], "thumbnail_image_url": gmi.file("x")},
        ),
        "addresses as texts": ("Veo3", {"media_urls": [clip]}),
        "sound in media": ("elevenlabs-tts-v3", {"media": [{"url": tone}]}),
        "sound in audio_base64": ("elevenlabs-tts-v3", inline_sound()),
        "picture in inlineData": ("seedream-5.0-lite", inline_picture()),
        "picture in image_url": ("seedream-5.0-lite", {"image_url": gmi.file("picture.png")}),
    }


GIVEN: dict[str, tuple[Task, dict[str, Any]]] = {
    "Veo3": ("text-to-video", {"prompt": "a hill"}),
    "elevenlabs-tts-v3": ("text-to-speech", {"input": "Hello"}),
    "seedream-5.0-lite": ("text-to-image", {"prompt": "a hill"}),
}


CASES = (
    "video in media_urls",
    "addresses as texts",
    "sound in media",
    "sound in audio_base64",
    "picture in inlineData",
    "picture in image_url",
)


@pytest.mark.parametrize("case", CASES)
async def test_every_shape_of_an_outcome_is_read(driver: Driver, gmi: Gmi, case: str) -> None:
    name, outcome = outcomes(gmi)[case]
    gmi.plans[name] = Plan(looks=0, outcome=outcome)
    task, given = GIVEN[name]
    main = (await driver.start(name, task, **given).files())[0]
    assert main.size_bytes > 100


@pytest.mark.parametrize("status", ["success", "succeeded", "completed", "SUCCESS"])
async def test_statuses_in_the_wild_are_ends(driver: Driver, gmi: Gmi, status: str) -> None:
    gmi.plans["Veo3"] = Plan(status=status)
    await driver.start("Veo3", "text-to-video", prompt="a hill").output()


async def test_an_unknown_status_is_no_end(driver: Driver, gmi: Gmi) -> None:
    gmi.plans["Veo3"] = Plan(looks=0, status="post-processing")
    attempt = driver.start("Veo3", "text-to-video", prompt="a hill")
    async with asyncio.timeout(60):
        while len(gmi.asked("GET", f"{PATH}/requests/")) < 2:
            await asyncio.sleep(0.05)
    assert not attempt.task.done()
    gmi.plans["Veo3"] = Plan(status="success")
    await attempt.output()


@pytest.mark.parametrize(
    "outcome",
    [
        {},
        None,
        {"thumbnail_image_url": "http://127.0.0.2/picture.png"},
        {"other": {"url": "http://127.0.0.2/picture.png"}},
        {"media_urls": [{"id": "0"}]},
        {"media_urls": "http://127.0.0.2/picture.png"},
    ],
    ids=["empty", "none", "thumbnail alone", "elsewhere", "no url", "a text"],
)
async def test_an_outcome_without_a_result_is_never_read_as_one(driver: Driver, gmi: Gmi, outcome: Any) -> None:
    gmi.plans["seedream-5.0-lite"] = Plan(looks=0, outcome=outcome if outcome is not None else "nothing")
    attempt = driver.start("seedream-5.0-lite", "text-to-image", prompt="a hill")
    assert await attempt.reason() == "upstream_error"
    assert attempt.units.images == 0


async def test_an_outcome_that_names_far_too_many_files_is_not_believed(driver: Driver, gmi: Gmi) -> None:
    gmi.plans["seedream-5.0-lite"] = Plan(looks=0, outcome={"media_urls": [{"url": gmi.file("picture.png")}] * 40})
    attempt = driver.start("seedream-5.0-lite", "text-to-image", prompt="a hill")
    assert await attempt.reason() == "upstream_error"
    assert gmi.asked("GET", "/files/") == []


async def test_addresses_of_the_payload_are_no_results(driver: Driver, gmi: Gmi) -> None:
    gmi.plans["bria-fibo-relight"] = Plan(looks=0, outcome={})
    attempt = driver.start("bria-fibo-relight", "image-relight", image=IMAGE, files=FILES)
    assert await attempt.reason() == "upstream_error"


FAILURES = [
    ({"error": "Music generation failed: rate limit exceeded(RPM)"}, "", "upstream_limited"),
    ({"error": "Insufficient credits. Please add more credits to your account."}, "", "upstream_limited"),
    ({"error": "Generation rejected by the safety system"}, "", "blocked"),
    ({}, "content policy violation", "blocked"),
    ({"reason": "worker timed out"}, "", "upstream_timeout"),
    ({"error": "something broke"}, "", "upstream_error"),
    ("", "", "upstream_error"),
]


@pytest.mark.parametrize(("outcome", "error", "reason"), FAILURES)
async def test_failed_jobs_are_read_by_their_words(
    driver: Driver, gmi: Gmi, outcome: Any, error: str, reason: str
) -> None:
    gmi.plans["Veo3"] = Plan(status="failed", outcome=outcome, error=error)
    attempt = driver.start("Veo3", "text-to-video", prompt="a hill")
    failure = await attempt.error()
    assert getattr(failure, "reason", "") == reason
    assert getattr(failure, "final", None) is (reason == "blocked")
    assert attempt.step.reason == reason


REFUSALS = [
    (said({"error": "prompt is required"}, 400), "RefusedInput", ""),
    (said({"error": "Generation rejected: unsafe"}, 400), "UpstreamFailed", "blocked"),
    (said({"error": "Insufficient credits. Please add more credits to your account."}, 402), "UpstreamFailed",
     "upstream_limited"),
    (said({"error": "bad key"}, 401), "UpstreamFailed", "upstream_error"),
    (said({"error": "too many"}, 429, retry_after="7"), "UpstreamFailed", "upstream_limited"),
    (said({"error": "Backend error (400). Please try again."}, 500), "UpstreamFailed", "refused_by_engine"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "reason"), REFUSALS, ids=["400", "blocked", "402", "401", "429", "backend"])
async def test_errors_as_texts_are_read(driver: Driver, gmi: Gmi, reply: Reply, kind: str, reason: str) -> None:
    gmi.fail(reply, reply, on="/requests", method="POST")
    attempt = driver.start("Veo3", "text-to-video", prompt="a hill")
    failure = await attempt.error()
    assert type(failure).__name__ == kind
    assert getattr(failure, "reason", "") == reason
    assert gmi.key not in f"{failure} {attempt.step.detail}"


async def test_a_model_that_is_not_there_is_no_fault_of_the_input(driver: Driver) -> None:
    failure = await driver.start("gone", "text-to-image", prompt="a hill").error()
    assert getattr(failure, "reason", "") == "upstream_error"
    assert getattr(failure, "final", None) is False


@pytest.mark.parametrize(
    "reply",
    [Reply(502, b"Bad Gateway", "text/html"), Reply(200, [b'{"request_id": "half', b"!"]), said({"status": "queued"})],
    ids=["502", "broken off", "no id"],
)
async def test_a_purchase_without_a_usable_answer_is_not_repeated(driver: Driver, gmi: Gmi, reply: Reply) -> None:
    gmi.fail(reply, on="/requests", method="POST")
    assert await driver.start("Veo3", "text-to-video", prompt="a hill").reason() == "upstream_unknown"
    assert len(gmi.asked("POST", f"{PATH}/requests")) == 1


async def test_a_job_that_stays_queued_for_ever_ends_with_its_request_and_is_cancelled_there(
    driver: Driver, gmi: Gmi
) -> None:
    attempt = driver.start("Z-Image", "text-to-image", prompt="a hill")
    await holds(lambda: gmi.asked("GET", f"{PATH}/requests/"))
    assert not attempt.task.done()
    await attempt.stop("deadline")
    await holds(lambda: gmi.asked("DELETE", f"{PATH}/requests/"))
    assert len(gmi.asked("DELETE", f"{PATH}/requests/")) == 1
    assert (attempt.step.outcome, attempt.step.reason) == ("expired", "deadline")


async def test_another_attempt_goes_on_with_the_job_and_buys_none(gmi: Gmi, tmp_path: Path) -> None:
    gmi.plans["Veo3"] = Plan(looks=10_000)
    given = {"prompt": "a hill"}
    async with driving("gmi", gmi, tmp_path, *MODELS, path=PATH) as first:
        lost = first.request("Veo3", "text-to-video", dict(given))
        await holds(lambda: gmi.asked("GET", f"{PATH}/requests/"))
        await lost.stop("lost")
    gmi.left.update(dict.fromkeys(gmi.left, 0))
    async with driving("gmi", gmi, tmp_path, *MODELS, path=PATH) as second:
        attempt = second.request("Veo3", "text-to-video", dict(given), request_id=lost.run.request.id, number=2)
        await attempt.output()
    assert len(gmi.asked("POST", f"{PATH}/requests")) == 1
    assert gmi.asked("DELETE", PATH) == []
    assert attempt.step.request in gmi.records


@pytest.mark.parametrize(("media_type", "data", "stored"), [
    ("image/png", PICTURE, "image/png"),
    ("image/jpeg", picture(64, 48, "JPEG"), "image/jpeg"),
])  # fmt: skip
async def test_files_are_uploaded_with_exactly_the_type_that_was_signed(
    driver: Driver, gmi: Gmi, media_type: str, data: bytes, stored: str
) -> None:
    image = upload(data, media_type, width=64, height=48)
    await driver.start("bria-fibo-relight", "image-relight", image=image, files={"in": data}).output()
    [put] = gmi.asked("PUT", "/bucket/")
    assert gmi.uploaded[put.path] == (data, stored)
    assert "authorization" not in put.headers, "the key stays at the upstream"


async def test_an_mp3_is_uploaded_under_either_type(driver: Driver, gmi: Gmi) -> None:
    gmi.mp3_type = "audio/mp3"
    data = sound("mp3", "libmp3lame", 2)
    sample = upload(data, "audio/mpeg", duration_ms=2000)
    await driver.start("minimax-audio-voice-clone-speech-2.6-hd", "voice-clone", input="Hello", sample=sample,
                       files={"in": data}).output()  # fmt: skip
    assert [put.headers["content-type"] for put in gmi.asked("PUT", "/bucket/")] == ["audio/mpeg", "audio/mp3"]


async def test_a_picture_that_cannot_be_uploaded_goes_as_a_data_uri_and_a_sound_is_refused(
    driver: Driver, gmi: Gmi
) -> None:
    data = picture(64, 48, "WEBP")
    await driver.start("bria-fibo-relight", "image-relight", image=upload(data, "image/webp", width=64, height=48),
                       files={"in": data}).output()  # fmt: skip
    assert sent(gmi)["image"].startswith("data:image/webp;base64,")
    sample = upload(b"x", "audio/flac", duration_ms=2000)
    words = await driver.start("minimax-audio-voice-clone-speech-2.6-hd", "voice-clone", input="Hello", sample=sample,
                               files={"in": b"x"}).refusal()  # fmt: skip
    assert "mp3, wav" in words


async def test_an_upload_that_fails_buys_nothing_and_leaves_no_doubt(driver: Driver, gmi: Gmi) -> None:
    gmi.fail(said({"error": "no"}, 500), said({"error": "no"}, 500), on="/upload-url")
    attempt = driver.start("bria-fibo-relight", "image-relight", image=IMAGE, files=FILES)
    assert await attempt.reason() == "upstream_error"
    assert gmi.asked("POST", f"{PATH}/requests") == []
