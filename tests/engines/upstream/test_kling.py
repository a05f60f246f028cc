"""The protocol `kling`, against a stand-in that checks its signed tokens."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.blobs.choice import open_blobs
from gateway.blobs.store import BlobPlace
from gateway.contract.ids import new_request_id
from gateway.contract.tasks import Task
from tests.engines.upstream.driver import NAME, TIMEOUT_S, Driver, driving, model, upload
from tests.engines.upstream.several import holds
from tests.media.samples import picture, sound
from tests.upstreams.kling import ACCESS, PATHS, SECRET, Kling, Plan, fault
from tests.upstreams.serving import Reply, standing
from workers.engines.upstream import jobs
from workers.engines.upstream.notes import Note, Notes

V3 = "kling-v3"
MODELS = (
    model("film", "text-to-video", "image-to-video", wire=V3, mode="std"),
    model("head", "talking-head", wire="kling-avatar", mode="std"),
    model("image", "text-to-image", "image-edit", wire="kling-v2-1"),
    model("gone", "text-to-image", wire="no-such-model"),
)
TONE, PICTURE = sound("mp3", "libmp3lame", 2), picture(64, 48)
HEARD = upload(TONE, "audio/mpeg", blob="heard", duration_ms=2000)
IMAGE = upload(PICTURE, "image/png", width=64, height=48)
FILES = {"in": PICTURE, "heard": TONE}


@pytest.fixture(scope="module")
def server() -> Iterator[Kling]:
    stand_in = Kling()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def kling(server: Kling) -> Kling:
    server.plans.clear()
    server.faults.clear()
    server.seen.clear()
    server.tasks.clear()
    return server


@pytest.fixture
async def driver(kling: Kling, tmp_path: Path) -> AsyncIterator[Driver]:
    async with driving("kling", kling, tmp_path, *MODELS) as made:
        yield made


TASKS: list[tuple[str, Task, dict[str, Any], str]] = [
    ("film", "text-to-video", {"prompt": "a hill", "seconds": 5, "size": "1920x1080", "guidance": 0.5}, PATHS[0]),
    ("film", "image-to-video", {"image": IMAGE, "prompt": "it moves"}, PATHS[1]),
    ("head", "talking-head", {"image": IMAGE, "audio": HEARD}, PATHS[2]),
    ("image", "text-to-image", {"prompt": "a hill", "n": 2}, PATHS[3]),
    ("image", "image-edit", {"prompt": "a hill", "image": IMAGE}, PATHS[3]),
]


@pytest.mark.parametrize(("name", "task", "given", "path"), TASKS, ids=[task for _, task, _, _ in TASKS])
async def test_each_task_has_its_path_and_is_measured(
    driver: Driver, kling: Kling, name: str, task: Task, given: dict[str, Any], path: str
) -> None:
    attempt = driver.start(name, task, **given, files=dict(FILES))
    files = await attempt.files()
    assert len(files) == given.get("n", 1)
    assert (attempt.units.video_ms, attempt.units.images) == ((0, len(files)) if name == "image" else (1000, 0))
    [asked] = kling.asked("POST", "/")
    assert asked.path == path
    assert attempt.step.request in kling.tasks


async def test_fields_have_its_names_and_forms(driver: Driver, kling: Kling) -> None:
    given = {"prompt": "a hill", "seconds": 5.0, "size": "1920x1080", "guidance": 0.5, "extra": {"sound": "on"}}
    attempt = driver.start("film", "text-to-video", **given)
    await attempt.output()
    body = kling.asked("POST", "/")[0].json()
    reference = body.pop("external_task_id")
    assert reference.startswith(attempt.run.request.id)
    assert body == {"model_name": V3, "prompt": "a hill", "duration": "5", "aspect_ratio": "16:9", "cfg_scale": 0.5,
                    "mode": "std", "sound": "on"}  # fmt: skip


async def test_files_go_as_base64_without_what_a_data_uri_has(driver: Driver, kling: Kling) -> None:
    await driver.start("head", "talking-head", image=IMAGE, audio=HEARD, files=dict(FILES)).output()
    body = kling.asked("POST", "/")[0].json()
    assert body["image"].startswith("iVBOR")
    assert not body["sound_file"].startswith("data:")


async def test_a_face_needs_a_sound(driver: Driver, kling: Kling) -> None:
    words = await driver.start("head", "talking-head", image=IMAGE, text="Hello", files=dict(FILES)).refusal()
    assert "audio" in words
    assert kling.seen == []


async def test_neither_half_of_the_key_leaves_the_worker(driver: Driver, kling: Kling) -> None:
    await driver.start("film", "text-to-video", prompt="a hill").output()
    assert all(SECRET not in str(asked.headers) for asked in kling.seen)


@pytest.mark.parametrize("key", ["no-colon", f"{ACCESS}:", f":{SECRET}", f"{ACCESS}:wrong"])
async def test_a_key_of_another_form_or_a_wrong_one_is_told(kling: Kling, tmp_path: Path, key: str) -> None:
    kling.key = key
    try:
        async with driving("kling", kling, tmp_path, *MODELS) as driver:
            attempt = driver.start("film", "text-to-video", prompt="a hill")
            assert await attempt.reason() == "upstream_error"
            assert "ACCESS:SECRET" in attempt.step.detail
            assert SECRET not in f"{await attempt.error()} {attempt.step.detail}"
    finally:
        del kling.key


CODES = [
    (401, 1004, "Authorization has expired", "upstream_error"),
    (429, 1101, "Account in arrears", "upstream_limited"),
    (429, 1102, "Resource pack depleted", "upstream_limited"),
    (400, 1201, "Invalid parameters: prompt", "refused"),
    (400, 1301, "Trigger strategy of the platform", "blocked"),
    (429, 1302, "The API request is too fast", "upstream_limited"),
    (429, 1303, "Concurrency or QPS exceed limit", "upstream_limited"),
    (200, 1301, "Content security policy", "blocked"),
    (503, 5001, "Server temporarily unavailable", "upstream_error"),
]


@pytest.mark.parametrize(("status", "code", "message", "reason"), CODES)
async def test_codes_say_more_than_statuses(
    driver: Driver, kling: Kling, status: int, code: int, message: str, reason: str
) -> None:
    kling.fail(fault(code, message, status), fault(code, message, status), method="POST")
    failure = await driver.start("film", "text-to-video", prompt="a hill").error()
    assert getattr(failure, "reason", "refused") == reason


async def test_a_model_that_is_not_there_is_no_fault_of_the_input(driver: Driver) -> None:
    assert await driver.start("gone", "text-to-image", prompt="a hill").reason() == "upstream_error"


@pytest.mark.parametrize(
    ("message", "reason"),
    [("Content policy violation", "blocked"), ("Generation timeout", "upstream_timeout"), ("", "upstream_error")],
)
async def test_failed_tasks_are_read_by_their_words(driver: Driver, kling: Kling, message: str, reason: str) -> None:
    kling.plans[V3] = Plan(status="failed", message=message)
    assert await driver.start("film", "text-to-video", prompt="a hill").reason() == reason


async def test_a_purchase_whose_answer_was_lost_is_found_by_our_name_for_it(driver: Driver, kling: Kling) -> None:
    kling.lose = 1
    attempt = driver.start("film", "text-to-video", prompt="a hill")
    await attempt.output()
    assert len(kling.asked("POST", "/")) == 1
    assert len(kling.tasks) == 1


async def test_a_purchase_that_never_came_about_may_be_made_anew(driver: Driver, kling: Kling) -> None:
    kling.fail(Reply(502, b"<html>", "text/html"), method="POST")
    attempt = driver.start("film", "text-to-video", prompt="a hill")
    await attempt.output()
    assert len(kling.asked("POST", "/")) == 2
    assert len(kling.tasks) == 1


@pytest.mark.parametrize("bought", [True, False])
async def test_a_worker_that_died_before_it_learnt_the_id_costs_nothing(
    kling: Kling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bought: bool
) -> None:
    monkeypatch.setattr(jobs, "NOTE_GRACE_S", 1.0 - TIMEOUT_S)  # waits a second in all for what may still come
    request_id, reference = new_request_id(), "the-name-of-the-first-purchase"
    await Notes(open_blobs(BlobPlace(url=str(tmp_path)))).intend(
        request_id, Note(upstream=NAME, model=V3, reference=reference)
    )
    if bought:
        task = {"task_id": "7", "reference": reference, "path": PATHS[0], "model": V3, "count": 1, "left": 1}
        kling.tasks["7"] = {**task, "status": "submitted"}
    async with driving("kling", kling, tmp_path, *MODELS) as driver:
        attempt = driver.request("film", "text-to-video", {"prompt": "a hill"}, request_id=request_id, number=2)
        await attempt.output()
    assert len(kling.asked("POST", "/")) == (0 if bought else 1)
    assert (attempt.step.request == "7") is bought


async def test_a_stopped_request_leaves_its_task_which_cannot_be_cancelled(driver: Driver, kling: Kling) -> None:
    kling.plans[V3] = Plan(stuck=True)
    attempt = driver.start("film", "text-to-video", prompt="a hill")
    await holds(lambda: kling.asked("GET", "/"))
    await attempt.stop()
    assert (attempt.step.outcome, attempt.step.reason) == ("cancelled", "cancelled_by_caller")
    assert {asked.method for asked in kling.seen} == {"POST", "GET"}
