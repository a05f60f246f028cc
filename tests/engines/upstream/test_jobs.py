"""Jobs elsewhere: noted before they are bought, resumed by whoever comes next, cancelled, and bought at most once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.blobs.names import job_name, owner_of
from gateway.blobs.store import BlobMissing
from gateway.contract.ids import new_request_id
from gateway.contract.pools import UpstreamSpec
from tests.engines.upstream.several import Attempt, Driver, holds, model, target
from tests.upstreams.openai import OpenAi, Way
from tests.upstreams.serving import HOST, Reply, standing

VIDEO = {"prompt": "a gate opens"}


@pytest.fixture
def there() -> Iterator[OpenAi]:
    stand_in = OpenAi()
    with standing(stand_in):
        yield stand_in


async def loaded(there: OpenAi, folder: Path, timeout_s: int = 60) -> Driver:
    """Make an engine; several on one folder are workers that share a blob store."""
    made = Driver(folder, allow=HOST)
    spec = UpstreamSpec(name="there", protocol="openai", url=there.base, timeout_s=timeout_s)
    other = UpstreamSpec(name="other", protocol="openai", url=there.base, timeout_s=timeout_s)
    both = model("v", target("there", "film"), target("other", "film2", order=1), tasks=("text-to-video",))
    await made.load({"there": spec, "other": other}, both)
    return made


@pytest.fixture
async def driver(there: OpenAi, tmp_path: Path) -> AsyncIterator[Driver]:
    made = await loaded(there, tmp_path)
    yield made
    await made.close()


def film(driver: Driver, **how: Any) -> Attempt:
    return driver.start("v", "text-to-video", keep=True, **VIDEO, **how)


async def note_of(driver: Driver, attempt: Attempt) -> bytes:
    try:
        return await driver.blobs.get(job_name(attempt.run.request.id))
    except BlobMissing:
        return b""


def test_the_sweeper_knows_whose_a_note_is() -> None:
    request_id = new_request_id()
    owner = owner_of(job_name(request_id))
    assert owner is not None
    assert (owner.request, owner.attempt) == (request_id, None)


async def test_a_job_is_noted_before_it_is_bought_and_forgotten_when_its_end_stands(
    there: OpenAi, driver: Driver
) -> None:
    there.ways["film"] = Way(wait_s=0.2)
    attempt = film(driver)
    await holds(lambda: there.bought())
    assert b'"reference"' in await note_of(driver, attempt)
    await attempt.output()
    assert b"video_1" in await note_of(driver, attempt)
    driver.engine.concluded(attempt.run.request.id, 1, fenced=False)
    async with asyncio.timeout(60):
        while await note_of(driver, attempt):
            await asyncio.sleep(0.02)


async def test_a_fenced_attempt_leaves_the_note_to_its_successor(there: OpenAi, driver: Driver) -> None:
    attempt = film(driver)
    await attempt.output()
    driver.engine.concluded(attempt.run.request.id, 1, fenced=True)
    await asyncio.sleep(0.1)
    assert b"video_1" in await note_of(driver, attempt)


async def test_whoever_takes_the_request_next_goes_on_waiting_and_buys_nothing(
    there: OpenAi, driver: Driver, tmp_path: Path
) -> None:
    there.ways["film"] = Way(looks=10_000)
    dead = film(driver)
    await holds(lambda: there.asked("GET", "/v1/videos/video_1"))
    await dead.stop("lost")
    there.ways["film"] = Way(looks=1)
    another = await loaded(there, tmp_path)
    for number in (2, 1):  # after a lost lease, and after Redis was emptied, which begins to count anew
        attempt = film(another, request_id=dead.run.request.id, attempt=number)
        assert (await attempt.output()).items
        assert attempt.run.steps[-1].request == "video_1"
    assert len(there.bought()) == 1
    assert there.asked("DELETE", "/v1/videos") == []
    assert dead.run.steps == []
    await another.close()


async def test_a_job_whose_route_is_gone_is_waited_for_where_its_upstream_is_still_known(
    there: OpenAi, driver: Driver, tmp_path: Path
) -> None:
    """A catalog may change under a job; a withdrawn upstream stays known to its workers until nobody needs it."""
    there.ways["film"] = Way(looks=10_000)
    dead = film(driver)
    await holds(lambda: there.asked("GET", "/v1/videos/video_1"))
    await dead.stop("lost")
    there.ways["film"] = Way(looks=1)
    spec = UpstreamSpec(name="there", protocol="openai", url=there.base, timeout_s=60)
    other = UpstreamSpec(name="other", protocol="openai", url=there.base, timeout_s=60)
    left = model("v", target("other", "film2"), tasks=("text-to-video",))
    for known, reason in (({"other": other}, "upstream_unknown"), ({"there": spec, "other": other}, "")):
        another = Driver(tmp_path, allow=HOST)
        await another.load(known, left)
        attempt = film(another, request_id=dead.run.request.id, attempt=2)
        if reason:
            assert (await attempt.error()).reason == reason
        else:
            assert (await attempt.output()).items
        await another.close()
    assert len(there.bought()) == 1


@pytest.mark.slow
async def test_a_purchase_without_an_answer_is_not_repeated(there: OpenAi, tmp_path: Path) -> None:
    driver = await loaded(there, tmp_path, timeout_s=1)
    there.ways["film"] = Way(hang=True)
    attempt = film(driver)
    error = await attempt.error()
    assert (error.reason, error.final) == ("upstream_unknown", True)
    again = film(driver, request_id=attempt.run.request.id, attempt=2)
    assert (await again.error()).reason == "upstream_unknown"
    assert len(there.bought()) == 1
    await driver.close()


async def test_a_purchase_that_is_under_way_in_another_worker_is_waited_for(
    there: OpenAi, driver: Driver, tmp_path: Path
) -> None:
    there.ways["film"] = Way(wait_s=0.8, looks=1)
    first = film(driver)
    await holds(lambda: there.bought())
    another = await loaded(there, tmp_path)
    second = film(another, request_id=first.run.request.id, attempt=2)
    assert (await second.output()).items
    assert (await first.output()).items
    assert len(there.bought()) == 1
    await another.close()


async def test_a_connection_that_breaks_inside_a_purchase_leaves_it_unknown(there: OpenAi, driver: Driver) -> None:
    there.fail(Reply(body=[b"!"]), on="/videos")
    error = await film(driver).error()
    assert error.reason == "upstream_unknown"
    assert len(there.bought()) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 402])
async def test_what_was_surely_not_bought_is_bought_elsewhere(there: OpenAi, driver: Driver, status: int) -> None:
    there.ways["film"] = Way(status=status)
    attempt = film(driver)
    await attempt.output()
    assert [(step.model, step.outcome) for step in attempt.run.steps] == [("film", "failed"), ("film2", "succeeded")]


async def test_a_job_that_fails_there_is_bought_elsewhere_and_one_that_is_blocked_is_not(
    there: OpenAi, driver: Driver
) -> None:
    there.ways["film"] = Way(end="failed", error={"code": "oom", "message": "no memory"}, looks=1)
    attempt = film(driver)
    await attempt.output()
    failed, made = attempt.run.steps
    assert (failed.request, failed.outcome, failed.detail) == ("video_1", "failed", "the job failed: oom no memory")
    assert (made.request, made.model) == ("video_2", "film2")
    there.ways["film"] = Way(end="failed", error={"code": "moderation_blocked", "message": "no"}, looks=1)
    error = await film(driver).error()
    assert (error.reason, error.final) == ("blocked", True)


@pytest.mark.parametrize("why", ["cancelled_by_caller", "deadline"])
async def test_a_job_is_cancelled_there_when_nobody_wants_it(there: OpenAi, driver: Driver, why: str) -> None:
    there.ways["film"] = Way(looks=10_000)
    attempt = film(driver)
    await holds(lambda: there.asked("GET", "/v1/videos/video_1"))
    await attempt.stop(why)
    await holds(lambda: there.asked("DELETE", "/v1/videos/video_1"))
    (step,) = attempt.run.steps
    assert (step.request, step.reason) == ("video_1", why)


async def test_a_job_that_is_cancelled_while_it_is_bought_is_cancelled_there(there: OpenAi, driver: Driver) -> None:
    there.ways["film"] = Way(wait_s=0.4)
    attempt = film(driver)
    await holds(lambda: there.bought())
    await attempt.stop("cancelled_by_caller")
    await holds(lambda: there.asked("DELETE", "/v1/videos/video_1"))


@pytest.mark.slow
async def test_looks_that_fail_say_nothing_of_the_job(there: OpenAi, driver: Driver) -> None:
    there.fail(
        *[Reply(status=500), Reply(status=429, headers={"retry-after-ms": "50"}), Reply(body=b"<")] * 2, method="GET"
    )
    attempt = film(driver)
    await attempt.output()
    assert (len(attempt.run.steps), len(there.bought())) == (1, 1)


async def test_a_result_that_cannot_be_copied_at_first_is_asked_for_again_and_not_bought_again(
    there: OpenAi, driver: Driver
) -> None:
    there.fail(Reply(status=500), Reply(body=[b"half", b"!"]), on="/content", method="GET")
    attempt = film(driver)
    assert (await attempt.output()).items[0].media_type == "video/mp4"
    there.fail(*[Reply(body=b"no film")] * 9, on="/content", method="GET")
    error = await film(driver).error()
    assert (error.reason, error.final) == ("upstream_error", True)
    assert len(there.bought()) == 2


async def test_a_resumed_job_that_has_failed_there_is_bought_elsewhere(there: OpenAi, driver: Driver) -> None:
    there.ways["film"] = Way(looks=10_000)
    dead = film(driver)
    await holds(lambda: there.asked("GET", "/v1/videos/video_1"))
    await dead.stop("lost")
    there.ways["film"] = Way(looks=1, end="failed", error={"code": "oom"})
    attempt = film(driver, request_id=dead.run.request.id, attempt=2)
    await attempt.output()
    tried = [(step.request, step.outcome) for step in attempt.run.steps]
    assert tried == [("video_1", "failed"), ("video_2", "succeeded")]
