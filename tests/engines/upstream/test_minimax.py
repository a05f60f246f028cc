"""The protocol `minimax`, against a stand-in that fails inside status 200, as the vendor does."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.tasks import Task
from tests.engines.upstream.driver import Driver, driving, model, upload
from tests.engines.upstream.several import holds
from tests.media.samples import picture, sound
from tests.upstreams.minimax import MiniMax, Plan, fault
from tests.upstreams.serving import Reply, said, standing

HAILUO = "MiniMax-Hailuo-2.3"
MODELS = (
    model("speech", "text-to-speech", wire="speech-2.6-hd", fields={"emotion": "voice_setting.emotion"}),
    model("clone", "voice-clone", wire="speech-2.6-hd"),
    model("music", "music", wire="music-2.5"),
    model("image", "text-to-image", wire="image-01"),
    model("film", "text-to-video", "image-to-video", wire=HAILUO, prompt_optimizer=True),
)
TONE, PICTURE = sound("mp3", "libmp3lame", 2), picture(64, 48)
HEARD = upload(TONE, "audio/mpeg", duration_ms=2000)
IMAGE = upload(PICTURE, "image/png", width=64, height=48)


@pytest.fixture(scope="module")
def server() -> Iterator[MiniMax]:
    stand_in = MiniMax()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def minimax(server: MiniMax) -> MiniMax:
    server.plans.clear()
    server.faults.clear()
    server.seen.clear()
    server.voices.clear()
    server.repeats, server.breaks, server.group = True, False, ""
    return server


@pytest.fixture
async def driver(minimax: MiniMax, tmp_path: Path) -> AsyncIterator[Driver]:
    async with driving("minimax", minimax, tmp_path, *MODELS) as made:
        yield made


@pytest.mark.parametrize(
    ("form", "media_type"),
    [(None, "audio/mpeg"), ("mp3", "audio/mpeg"), ("flac", "audio/flac"), ("wav", "audio/wav"), ("pcm", "audio/pcm")],
)
async def test_speech_comes_as_digits_and_is_measured(driver: Driver, form: str | None, media_type: str) -> None:
    attempt = driver.start("speech", "text-to-speech", input="Hello", voice="v", response_format=form)
    made = await attempt.sound()
    assert made.media_type == media_type
    assert (attempt.units.characters, attempt.units.audio_ms) == (5, made.duration_ms)
    assert 1990 <= made.duration_ms <= 2100


async def test_fields_lie_in_the_objects_they_belong_to(driver: Driver, minimax: MiniMax) -> None:
    await driver.start("speech", "text-to-speech", input="Hello", voice="v", speed=1.2, language="auto",
                       extra={"emotion": "happy"}).output()  # fmt: skip
    assert minimax.seen[-1].json() == {
        "model": "speech-2.6-hd", "text": "Hello", "stream": False, "output_format": "hex", "language_boost": "auto",
        "voice_setting": {"voice_id": "v", "speed": 1.2, "emotion": "happy"}, "audio_setting": {"format": "mp3"},
    }  # fmt: skip


@pytest.mark.parametrize("repeats", [True, False])
async def test_the_end_of_a_stream_is_not_heard_twice(driver: Driver, minimax: MiniMax, repeats: bool) -> None:
    minimax.repeats = repeats
    attempt = driver.streamed("speech", "text-to-speech", input="Hello", voice="v")
    made = await attempt.sound()
    assert attempt.heard == made.data == TONE
    assert len(attempt.frames) == 3


async def test_half_a_stream_is_a_failure(driver: Driver, minimax: MiniMax) -> None:
    minimax.breaks = True
    assert await driver.streamed("speech", "text-to-speech", input="Hello", voice="v").reason() == "upstream_error"
    assert len(minimax.seen) == 1


async def test_a_stream_that_fails_inside_is_read_by_its_code(driver: Driver, minimax: MiniMax) -> None:
    event = b'data: {"base_resp": {"status_code": 1026, "status_msg": "input sensitive"}}\n\n'
    minimax.fail(Reply(200, [event], "text/event-stream"))
    assert await driver.streamed("speech", "text-to-speech", input="Hello", voice="v").reason() == "blocked"
    minimax.fail(fault(1002, "rate limit"))
    assert await driver.streamed("speech", "text-to-speech", input="Hi", voice="v").reason() == "upstream_limited"


async def test_a_voice_is_made_spoken_with_and_removed(driver: Driver, minimax: MiniMax) -> None:
    extra = {"need_noise_reduction": True, "need_volumn_normalization": True}
    attempt = driver.start("clone", "voice-clone", input="Hello", sample=HEARD, extra=extra, files={"in": TONE})
    assert (await attempt.sound()).duration_ms > 1900
    paths = [asked.path for asked in minimax.seen]
    assert paths == ["/v1/files/upload", "/v1/voice_clone", "/v1/t2a_v2", "/v1/delete_voice"]
    cloned, spoken = minimax.seen[1].json(), minimax.seen[2].json()
    assert cloned["need_noise_reduction"] is cloned["need_volume_normalization"] is True
    assert spoken["voice_setting"] == {"voice_id": cloned["voice_id"]}
    assert not set(extra) & set(spoken)
    assert minimax.voices == {}
    assert TONE in minimax.uploads.values()


async def test_a_voice_is_removed_when_its_request_is_stopped(driver: Driver, minimax: MiniMax) -> None:
    minimax.fail(Reply(200, [b"{", b"~"]), on="/t2a_v2")
    attempt = driver.start("clone", "voice-clone", input="Hello", sample=HEARD, files={"in": TONE})
    await holds(lambda: minimax.asked("POST", "/v1/t2a_v2"))
    assert len(minimax.voices) == 1
    await attempt.stop()
    await holds(lambda: minimax.voices == {})


async def test_a_sample_of_another_type_is_refused(driver: Driver, minimax: MiniMax) -> None:
    heard = upload(TONE, "audio/flac", duration_ms=2000)
    words = await driver.start("clone", "voice-clone", input="Hello", sample=heard, files={"in": TONE}).refusal()
    assert "mp3, m4a, wav" in words
    assert minimax.seen == []


async def test_music_is_made(driver: Driver, minimax: MiniMax) -> None:
    attempt = driver.start("music", "music", prompt="slow", extra={"lyrics": "[Instrumental]"})
    made = await attempt.sound()
    assert attempt.units.audio_ms == made.duration_ms > 1900
    assert minimax.seen[-1].json()["lyrics"] == "[Instrumental]"
    assert "lyrics is required" in await driver.start("music", "music", prompt="slow").refusal()


async def test_images_are_copied(driver: Driver, minimax: MiniMax) -> None:
    attempt = driver.start("image", "text-to-image", prompt="a hill", n=2, size="1280x720")
    assert len(await attempt.files()) == 2
    assert (attempt.units.images, attempt.units.pixels) == (2, 2 * 64 * 48)
    assert minimax.seen[0].json() == {"model": "image-01", "prompt": "a hill", "n": 2, "width": 1280, "height": 720,
                                      "response_format": "url"}  # fmt: skip


async def test_images_that_did_not_pass_are_blocked(driver: Driver, minimax: MiniMax) -> None:
    minimax.fail(said({"data": {"image_urls": []}, "metadata": {"success_count": "0", "failed_count": "1"}}))
    assert await driver.start("image", "text-to-image", prompt="a hill").reason() == "blocked"


@pytest.mark.parametrize(("task", "given"), [
    ("text-to-video", {"prompt": "a hill", "seconds": 6, "size": "1366x768"}),
    ("image-to-video", {"image": IMAGE, "prompt": "it moves"}),
])  # fmt: skip
async def test_videos_are_tasks_whose_file_is_asked_for(
    driver: Driver, minimax: MiniMax, task: Task, given: dict[str, Any]
) -> None:
    attempt = driver.start("film", task, **given, files={"in": PICTURE})
    assert (await attempt.picture()).media_type == "video/mp4"
    assert attempt.units.video_ms == 1000
    body = minimax.asked("POST", "/v1/video_generation")[0].json()
    assert (body["model"], body["prompt_optimizer"]) == (HAILUO, True)
    if task == "text-to-video":
        assert (body["duration"], body["resolution"]) == (6, "768P")
    else:
        assert body["first_frame_image"].startswith("data:image/png;base64,")
    assert attempt.step.request in minimax.tasks


async def test_a_failed_video_is_read_by_its_words(driver: Driver, minimax: MiniMax) -> None:
    minimax.plans[HAILUO] = Plan(status="Fail", message="output content flagged as sensitive content")
    assert await driver.start("film", "text-to-video", prompt="a hill").reason() == "blocked"
    minimax.plans[HAILUO] = Plan(status="Fail")
    assert await driver.start("film", "text-to-video", prompt="a hill").reason() == "upstream_error"


async def test_an_account_of_a_group_names_it_in_each_call(minimax: MiniMax, tmp_path: Path) -> None:
    minimax.group = "1234567890"
    key, minimax.key = minimax.key, f"1234567890:{minimax.key}"
    try:
        async with driving("minimax", minimax, tmp_path, *MODELS) as driver:
            minimax.key = key
            await driver.start("speech", "text-to-speech", input="Hello", voice="v").output()
            await driver.start("film", "text-to-video", prompt="a hill").output()
    finally:
        minimax.key = key


FAULTS: dict[int, str] = {
    1000: "upstream_error",
    1001: "upstream_timeout",
    1002: "upstream_limited",
    1004: "upstream_error",
    1008: "upstream_limited",
    1026: "blocked",
    1027: "blocked",
    1039: "upstream_limited",
    2013: "refused",
    2049: "upstream_error",
    2056: "upstream_limited",
    9999: "upstream_error",
}


@pytest.mark.parametrize(("code", "reason"), FAULTS.items())
async def test_codes_inside_a_success_are_failures(driver: Driver, minimax: MiniMax, code: int, reason: str) -> None:
    minimax.fail(fault(code, "it says so"), fault(code, "it says so"))
    failure = await driver.start("speech", "text-to-speech", input="Hello", voice="v").error()
    assert getattr(failure, "reason", "refused") == reason
    minimax.faults.clear()
    minimax.fail(fault(code, "it says so"), fault(code, "it says so"), method="POST")


@pytest.mark.parametrize(
    "body", [{"data": {"audio": "xyz"}}, {"data": {}}, {"data": {"audio": ""}}, [], {"data": None}]
)
async def test_digits_that_are_none_are_no_sound(driver: Driver, minimax: MiniMax, body: Any) -> None:
    minimax.fail(said(body), said(body))
    assert await driver.start("speech", "text-to-speech", input="Hello", voice="v").reason() == "upstream_error"


async def test_speech_needs_a_voice(driver: Driver) -> None:
    assert "voice" in await driver.start("speech", "text-to-speech", input="Hello").refusal()
