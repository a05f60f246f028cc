"""The protocol `fal`, against a stand-in for its queue."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.events import Segment, TranscriptOutput
from gateway.contract.tasks import Task
from tests.engines.upstream.driver import Driver, driving, model, upload
from tests.engines.upstream.several import holds
from tests.media.samples import film, picture, sound
from tests.upstreams.fal import Fal, Plan, typed
from tests.upstreams.serving import Reply, said, standing

FLUX = "fal-ai/flux/dev"
MODELS = (
    model("flux", "text-to-image", "image-edit", "image-restyle", wire=FLUX, enable_safety_checker=True),
    model("blend", "image-blend", "image-relight", wire="fal-ai/blend"),
    model("upscale", "image-upscale", wire="fal-ai/upscale-image"),
    model("clip", "text-to-video", "image-to-video", "talking-head", wire="fal-ai/kling-video/v2/master"),
    model("larger", "video-upscale", wire="fal-ai/video-upscaler"),
    model("tts", "text-to-speech", "voice-clone", wire="fal-ai/some-tts"),
    model("music", "music", wire="fal-ai/some-audio", fields={"seconds": "seconds_total as integer"}),
    model("whisper", "speech-to-text", wire="fal-ai/whisper"),
    model("own", "text-to-image", wire="workflows/me/mine/v2"),
    model("gone", "text-to-image", wire="fal-ai/no-such"),
)
PICTURE, TONE = picture(64, 48), sound("mp3", "libmp3lame", 2)
IMAGE = upload(PICTURE, "image/png", width=64, height=48)
HEARD = upload(TONE, "audio/mpeg", blob="heard", duration_ms=2000)
SHOWN = upload(film(16), "video/mp4", blob="shown", duration_ms=1000, width=64, height=64, frames=16)
FILES = {"in": PICTURE, "heard": TONE, "shown": film(16)}


@pytest.fixture(scope="module")
def server() -> Iterator[Fal]:
    stand_in = Fal()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def fal(server: Fal) -> Fal:
    server.plans.clear()
    server.faults.clear()
    server.seen.clear()
    return server


@pytest.fixture
async def driver(fal: Fal, tmp_path: Path) -> AsyncIterator[Driver]:
    async with driving("fal", fal, tmp_path, *MODELS) as made:
        yield made


def sent(fal: Fal) -> dict[str, Any]:
    """Give the body of the one job that was bought."""
    [asked] = fal.asked("POST", "/")
    body: dict[str, Any] = asked.json()
    return body


TASKS: list[tuple[str, Task, dict[str, Any], str]] = [
    ("flux", "text-to-image", {"prompt": "a hill"}, "image/png"),
    ("flux", "image-edit", {"prompt": "a hill", "image": IMAGE}, "image/png"),
    ("flux", "image-restyle", {"prompt": "oil", "image": IMAGE}, "image/png"),
    ("blend", "image-blend", {"images": [IMAGE, IMAGE]}, "image/png"),
    ("blend", "image-relight", {"image": IMAGE}, "image/png"),
    ("upscale", "image-upscale", {"image": IMAGE, "scale": 2}, "image/png"),
    ("clip", "text-to-video", {"prompt": "a hill", "seconds": 5}, "video/mp4"),
    ("clip", "image-to-video", {"image": IMAGE}, "video/mp4"),
    ("clip", "talking-head", {"image": IMAGE, "audio": HEARD}, "video/mp4"),
    ("larger", "video-upscale", {"video": SHOWN}, "video/mp4"),
    ("tts", "text-to-speech", {"input": "Hello"}, "audio/mpeg"),
    ("tts", "voice-clone", {"input": "Hello", "sample": HEARD}, "audio/mpeg"),
    ("music", "music", {"prompt": "slow", "seconds": 2}, "audio/mpeg"),
]


@pytest.mark.parametrize(("name", "task", "given", "media_type"), TASKS, ids=[task for _, task, _, _ in TASKS])
async def test_each_task_is_served_and_measured(
    driver: Driver, fal: Fal, name: str, task: Task, given: dict[str, Any], media_type: str
) -> None:
    attempt = driver.start(name, task, **given, files=dict(FILES))
    main = (await attempt.files())[0]
    assert main.media_type == media_type
    units = attempt.units
    assert (units.images, units.video_ms, units.audio_ms) == {
        "image/png": (1, 0, 0), "video/mp4": (0, 1000, 0), "audio/mpeg": (0, 0, main.duration_ms),
    }[media_type]  # fmt: skip
    for name in ("image_url", "audio_url", "video_url", "reference_audio_url"):
        assert sent(fal).get(name, "data:").startswith("data:")


async def test_fields_have_the_names_that_models_share(driver: Driver, fal: Fal) -> None:
    attempt = driver.start(
        "flux", "text-to-image", prompt="a hill", n=2, size="1280x720", steps=20, guidance=3.5, seed=7
    )
    files = await attempt.files()
    assert [each.seed for each in files] == [42, 42]
    assert sent(fal) == {
        "prompt": "a hill", "num_images": 2, "image_size": {"width": 1280, "height": 720}, "num_inference_steps": 20,
        "guidance_scale": 3.5, "seed": 7, "enable_safety_checker": True,
    }  # fmt: skip


async def test_a_transcript_is_read_and_the_sound_of_the_caller_counted(driver: Driver) -> None:
    attempt = driver.start("whisper", "speech-to-text", file=HEARD, files=dict(FILES))
    output = await attempt.output()
    assert isinstance(output, TranscriptOutput)
    assert (output.text, output.language, output.duration_ms) == ("Hello there", "en", 2000)
    assert output.segments == [Segment(0, 1500, "Hello"), Segment(1500, 1500, "there")]
    assert attempt.units.audio_ms == 2000


async def test_a_job_is_looked_at_below_its_app_and_not_where_the_answer_points(driver: Driver, fal: Fal) -> None:
    await driver.start("flux", "text-to-image", prompt="a hill").output()
    await driver.start("own", "text-to-image", prompt="a hill").output()
    looks = {asked.path.partition("/requests/")[0] for asked in fal.asked("GET", "/") if "/requests/" in asked.path}
    assert looks == {"/fal-ai/flux", "/workflows/me/mine"}


FAILED: dict[str, tuple[Plan, str, bool]] = {
    "blocked": (Plan(reply=typed("content_policy_violation", "The content could not be processed")), "blocked", True),
    "refused": (Plan(reply=typed("image_too_small", "Image dimensions are too small")), "refused", True),
    "broken": (Plan(reply=said({"detail": "Internal Server Error"}, 500)), "upstream_error", False),
    "late": (Plan(reply=said({"detail": "timed out"}, 504, x_fal_error_type="request_timeout")), "upstream_timeout",
             False),
    "in the status": (Plan(error="Runner disconnected", error_type="runner_disconnected"), "upstream_error", False),
    "limited": (Plan(error="rate limit", error_type="rate_limited"), "upstream_limited", False),
    "flagged": (Plan(output={"images": [{"url": "http://127.0.0.2:1/x.png"}], "has_nsfw_concepts": [True]}), "blocked",
                True),
}  # fmt: skip


@pytest.mark.parametrize("case", list(FAILED))
async def test_failed_jobs_which_are_completed_too_are_told_apart(driver: Driver, fal: Fal, case: str) -> None:
    plan, reason, final = FAILED[case]
    fal.plans[FLUX] = plan
    failure = await driver.start("flux", "text-to-image", prompt="a hill").error()
    assert getattr(failure, "reason", "refused") == reason
    assert getattr(failure, "final", True) is final


REFUSED: dict[str, tuple[Reply, str]] = {
    "limit": (said({"detail": "too many"}, 429, retry_after="3", x_fal_error_type="concurrent_requests_limit"),
              "upstream_limited"),
    "balance": (said({"detail": "User is locked. Reason: Exhausted balance. Insufficient balance."}, 403),
                "upstream_limited"),
    "policy": (typed("content_policy_violation", "no"), "blocked"),
    "input": (typed("missing", "Field required"), "refused"),
    "key": (said({"detail": "No user found"}, 401), "upstream_error"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
async def test_refusals_are_read_by_type(driver: Driver, fal: Fal, case: str) -> None:
    reply, reason = REFUSED[case]
    fal.fail(reply, reply, method="POST")
    failure = await driver.start("flux", "text-to-image", prompt="a hill").error()
    assert getattr(failure, "reason", "refused") == reason


async def test_an_app_that_is_not_there_is_no_fault_of_the_input(driver: Driver) -> None:
    assert await driver.start("gone", "text-to-image", prompt="a hill").reason() == "upstream_error"


async def test_a_stopped_request_cancels_its_job(driver: Driver, fal: Fal) -> None:
    fal.plans[FLUX] = Plan(stuck=True)
    attempt = driver.start("flux", "text-to-image", prompt="a hill")
    await holds(lambda: fal.asked("GET", "/"))
    await attempt.stop()
    await holds(lambda: fal.asked("PUT", "/"))
    [put] = fal.asked("PUT", "/")
    assert put.path == f"/fal-ai/flux/requests/{attempt.step.request}/cancel"


@pytest.mark.parametrize(
    "output", [{}, [], "x", {"images": "http://127.0.0.2/x.png"}, {"prompt": "http://127.0.0.2/x"}]
)
async def test_an_output_without_a_file_is_none(driver: Driver, fal: Fal, output: Any) -> None:
    fal.plans[FLUX] = Plan(output=output)
    assert await driver.start("flux", "text-to-image", prompt="a hill").reason() == "upstream_error"
