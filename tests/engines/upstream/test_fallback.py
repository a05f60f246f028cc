"""Several targets: who is tried when, what is recorded, and what an upstream that fails costs callers."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.contract.pools import UpstreamSpec
from gateway.contract.request import Leg
from gateway.stack.ports import free_port
from tests.engines.upstream.several import Driver, holds, model, target
from tests.upstreams.openai import WORDS, OpenAi, Way
from tests.upstreams.serving import HOST, standing
from workers.engines.upstream.failures import UpstreamFailed

FAILING = {
    "limited": Way(status=429, headers={"retry-after": "30"}),
    "broken": Way(status=500),
    "garbled": Way(garbled=True),
    "hung": Way(hang=True),
    "wrong key": Way(status=401),
    "no balance": Way(status=402),
}


@pytest.fixture
def first() -> Iterator[OpenAi]:
    stand_in = OpenAi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
def second() -> Iterator[OpenAi]:
    stand_in = OpenAi()
    with standing(stand_in):
        yield stand_in


@pytest.fixture
async def driver(first: OpenAi, second: OpenAi, tmp_path: Path) -> AsyncIterator[Driver]:
    made = Driver(tmp_path, allow=HOST)
    hasty = UpstreamSpec(name="hasty", protocol="openai", url=first.base, timeout_s=1)
    await made.load(
        {"first": first.base, "hasty": hasty, "second": second.base, "dead": f"http://127.0.0.1:{free_port()}/v1"},
        model("both", target("first", "a"), target("second", "b", order=1), tasks=("chat", "text-to-video")),
        model("hurried", target("hasty", "a"), target("second", "b", order=1)),
        model("one", target("first", "a")),
        model("even", target("first", "a", weight=3), target("second", "b", weight=1)),
        model("dead-first", target("dead"), target("second", "b", order=1)),
    )
    yield made
    await made.close()


async def test_the_lowest_order_is_used_and_equals_share_by_weight(
    first: OpenAi, second: OpenAi, driver: Driver
) -> None:
    await asyncio.gather(*(driver.start("both").output() for _ in range(20)))
    assert (len(first.seen), len(second.seen)) == (20, 0)
    await asyncio.gather(*(driver.start("even").output() for _ in range(200)))
    assert 100 < len(first.seen) - 20 < 190
    assert len(second.seen) == 220 - len(first.seen)


async def test_the_callers_wish_comes_before_the_order(first: OpenAi, second: OpenAi, driver: Driver) -> None:
    await driver.start("both", only=("second", "first")).output()
    assert (len(first.seen), len(second.seen)) == (0, 1)
    first.ways["a"] = Way(status=500)
    assert (await driver.start("both", only=("first",)).error()).reason == "upstream_error"
    assert len(second.seen) == 1


@pytest.mark.parametrize("how", FAILING)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failing_first_target_costs_no_caller_a_failure(
    first: OpenAi, second: OpenAi, driver: Driver, how: str, stream: bool
) -> None:
    first.ways["a"] = FAILING[how]
    name, upstream = ("hurried", "hasty") if how == "hung" else ("both", "first")
    for _ in range(3):
        attempts = [driver.start(name, stream=stream) for _ in range(10)]
        for attempt in attempts:
            assert (await attempt.output()).choices[0].text.split() == WORDS.split()
            assert attempt.run.steps[-1].name == "second"
            assert attempt.run.units == attempt.run.steps[-1].units
            assert len(attempt.run.steps) <= 2
            assert attempt.run.steps[0].outcome == ("failed" if len(attempt.run.steps) == 2 else "succeeded")
    assert len(first.seen) <= 10 + 2  # the first ten, and what half-open trials there may have been
    assert driver.engine.upstreams()[upstream].state in ("open", "half_open")


async def test_a_dead_first_target_is_left_alone_after_a_few_calls(second: OpenAi, driver: Driver) -> None:
    attempts = [driver.start("dead-first") for _ in range(5)]
    for attempt in attempts:
        await attempt.output()
    assert driver.engine.upstreams()["dead"].state == "open"
    late = driver.start("dead-first")
    await late.output()
    assert [step.name for step in late.run.steps] == ["second"]


async def test_exactly_one_trial_goes_to_a_breaker_that_is_half_open(
    first: OpenAi, second: OpenAi, driver: Driver
) -> None:
    first.ways["a"] = Way(status=500)
    await asyncio.gather(*(driver.start("both").output() for _ in range(6)))
    asked = len(first.seen)
    await holds(lambda: driver.engine.upstreams()["first"].state == "half_open")
    first.ways["a"] = Way(wait_s=0.3)
    await asyncio.gather(*(driver.start("both").output() for _ in range(10)))
    assert len(first.seen) == asked + 1
    await driver.start("both").output()
    assert len(first.seen) == asked + 2
    assert driver.engine.upstreams()["first"].state == "closed"


async def test_retry_after_is_obeyed(first: OpenAi, second: OpenAi, driver: Driver) -> None:
    """Neither shorter nor much longer; where the machine paused, it is looked at once more."""
    for _ in range(3):
        first.ways["a"] = Way(status=429, headers={"retry-after-ms": "700"})
        began, asked = time.monotonic(), len(first.seen)
        await driver.start("both").output()
        assert len(first.seen) == asked + 1
        first.ways.clear()
        while len(first.seen) == asked + 1:
            await driver.start("both").output()
            await asyncio.sleep(0.02)
        took_s = time.monotonic() - began
        assert took_s > 0.6
        if took_s < 2.0:
            return
    raise AssertionError("it is left alone for too long")


async def test_where_all_are_left_alone_it_is_said_at_once(first: OpenAi, driver: Driver) -> None:
    first.ways["a"] = Way(status=429, headers={"retry-after": "300"})
    await driver.start("one").error()
    took_s = []
    for _ in range(3):
        began = time.monotonic()
        error = await driver.start("one").error()
        took_s.append(time.monotonic() - began)
        assert isinstance(error, UpstreamFailed)
        assert (error.reason, error.final, len(first.seen)) == ("upstream_limited", False, 1)
    assert min(took_s) < 0.2


async def test_second_tries_at_an_only_target_keep_to_a_budget(first: OpenAi, driver: Driver) -> None:
    first.ways["a"] = Way(status=500)
    attempt = driver.start("one")
    assert (await attempt.error()).reason == "upstream_error"
    assert [step.outcome for step in attempt.run.steps] == ["failed", "failed"]
    legged = driver.start("one", legs=(Leg("other", "m", 1),))
    await legged.error()
    assert len(legged.run.steps) == 1


async def test_nothing_is_tried_again_after_a_piece_has_gone_out(first: OpenAi, second: OpenAi, driver: Driver) -> None:
    first.ways["a"] = Way(pieces=2)
    attempt = driver.start("both", stream=True)
    assert (await attempt.error()).reason == "upstream_error"
    assert attempt.texts
    assert second.seen == []
    (step,) = attempt.run.steps
    assert step.units.output_tokens > 0


async def test_a_refusal_is_not_taken_elsewhere(first: OpenAi, second: OpenAi, driver: Driver) -> None:
    first.ways["a"] = Way(status=400, code="content_policy_violation")
    assert (await driver.start("both").error()).final
    assert second.seen == []
    assert driver.engine.upstreams()["first"].state == "closed"


async def test_what_the_caller_leaves_is_recorded_as_far_as_it_came(first: OpenAi, driver: Driver) -> None:
    first.ways["a"] = Way(words="word " * 400)
    attempt = driver.start("one", stream=True)
    await holds(lambda: len(attempt.texts) > 5)
    await attempt.stop("client_gone")
    (step,) = attempt.run.steps
    assert (step.outcome, step.reason, step.estimated) == ("cancelled", "client_gone", True)
    assert 5 < step.units.output_tokens < 1000
    assert attempt.run.units.output_tokens == step.units.output_tokens


async def test_no_more_calls_are_open_than_an_upstream_takes(first: OpenAi, tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    spec = UpstreamSpec(name="first", protocol="openai", url=first.base, concurrency=2)
    await driver.load({"first": spec}, model("one", target("first", "a")))
    first.ways["a"] = Way(hang=True)
    assert driver.engine.capacity() == 2
    attempts = [driver.start("one") for _ in range(4)]
    await holds(lambda: len(first.seen) == 2)
    await asyncio.sleep(0.15)
    assert (len(first.seen), driver.engine.capacity()) == (2, 0)
    for attempt in attempts[:2]:
        await attempt.stop("client_gone")
    await holds(lambda: len(first.seen) == 4)
    for attempt in attempts[2:]:
        await attempt.stop("client_gone")
    assert driver.engine.capacity() == 2
    await driver.close()


async def test_a_model_without_a_key_names_its_setting(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    await driver.load({"far-away": "http://127.0.0.1:1/v1"}, model("m", target("far-away")), keys={})
    assert (driver.states["m"].state, driver.states["m"].detail) == ("unset", "FAREGATE_UPSTREAM_FAR_AWAY_KEY")
    assert driver.engine.upstreams()["far-away"].state == "unset"
    await driver.close()
