"""Requests drawn together by the real diffusers: each as it would be alone, and stopped without harm to the others."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from gateway.contract.inputs import ImageInput
from tests.engines.diffusers_driver import SD, Attempt, Driver, serving
from workers.engine import EngineError, EngineLost
from workers.engines.diffusers.engine import DiffusersEngine
from workers.engines.diffusers.sitting import Sitting
from workers.engines.diffusers.tasks import TASKS

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.filterwarnings("ignore")]

ASKED: dict[str, Any] = {"prompt": "a gate", "size": "64x64", "steps": 6}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(tmp_path_factory: pytest.TempPathFactory, diffusers_models: Path) -> AsyncIterator[Driver]:
    async with serving(diffusers_models, tmp_path_factory.mktemp("media"), SD) as made:
        yield made


@pytest.fixture
def calls(driver: Driver) -> Iterator[list[int]]:
    """Count the images of each call of the denoiser, by a hook of torch; guidance doubles them."""
    seen: list[int] = []
    denoiser = pipeline_of(driver.engine)._base.unet
    hook = denoiser.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[0] // 2))
    yield seen
    hook.remove()


def pipeline_of(engine: DiffusersEngine) -> Any:
    pipeline = engine.gallery.loaded("sd")
    assert pipeline is not None
    return pipeline


def ask(driver: Driver, seed: int, **more: Any) -> Attempt:
    return driver.ask("sd", "text-to-image", **ASKED | {"seed": seed} | more)


async def test_a_batch_gives_each_request_what_it_gets_alone(driver: Driver) -> None:
    """Before any encoding: differences under 1e-4 of a colour's range."""
    prompts = ["a gate", "a river at dawn, cold and very wide", "fire", "one two three"]
    drawings = [
        TASKS["text-to-image"].draw(ImageInput(**ASKED | {"prompt": prompt, "seed": seed}), {})
        for seed, prompt in enumerate(prompts)
    ]
    pipeline = pipeline_of(driver.engine)

    def draw(*wanted: Any) -> list[Any]:
        return [drawn.pixels[0] for drawn in pipeline.draw(Sitting(wanted, lambda _: None), 16)]

    together = await asyncio.to_thread(draw, *drawings)
    alone = [(await asyncio.to_thread(draw, drawing))[0] for drawing in drawings]
    assert max(np.abs(one - other).max() for one, other in zip(together, alone, strict=True)) < 1e-4
    assert np.abs(alone[0] - alone[1]).max() > 0.1


async def test_requests_that_wait_are_drawn_in_one_call(driver: Driver, calls: list[int]) -> None:
    attempts = [ask(driver, seed) for seed in range(8)]
    pictures = [np.asarray(await attempt.picture()) for attempt in attempts]
    assert calls == [8] * 6, "all eight in each of six steps"
    assert len({picture.tobytes() for picture in pictures}) == 8
    assert {attempt.run.units.steps for attempt in attempts} == {6}


async def test_pictures_to_draw_over_are_drawn_together_too(driver: Driver, calls: list[int]) -> None:
    def edit(seed: int) -> Attempt:
        picture = driver.picture(hue=seed)
        return driver.ask("sd", "image-restyle", image=picture, prompt="a", steps=4, strength=1.0, seed=seed)

    busy = ask(driver, 1, steps=20)
    await busy.drawn(1)
    attempts = [edit(seed) for seed in range(3)]
    together = [np.asarray(await attempt.picture()).astype(int) for attempt in attempts]
    await busy.output()
    assert calls[-4:] == [3] * 4
    alone = [np.asarray(await edit(seed).picture()).astype(int) for seed in range(3)]
    assert max(np.abs(one - other).max() for one, other in zip(together, alone, strict=True)) <= 1


async def test_what_differs_is_not_mixed(driver: Driver, calls: list[int]) -> None:
    kinds: list[dict[str, Any]] = [{}, {"size": "64x32"}, {"steps": 5}, {"guidance": 2.0}, {"negative_prompt": "x"}]
    attempts = [ask(driver, 1, **more) for more in kinds]
    for attempt in attempts:
        await attempt.picture()
    assert set(calls) == {1}


async def test_the_wait_for_a_turn_counts_as_queue(driver: Driver) -> None:
    first = ask(driver, 1, steps=30)
    await first.drawn(1)
    second = ask(driver, 1, size="32x32", steps=1)
    await second.output()
    await first.output()
    assert second.run.phases.queue_us > second.run.phases.forward_us
    wall_us = (time.perf_counter() - second.began_s) * 1e6
    phases = second.run.phases
    assert phases.queue_us + phases.forward_us + phases.preprocess_us + phases.postprocess_us <= wall_us


async def test_a_cancelled_request_stops_within_a_step_and_counts_those_it_had(
    driver: Driver, calls: list[int]
) -> None:
    attempt = ask(driver, 1, steps=400, size="128x128")
    await attempt.drawn(3)
    attempt.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt.task
    counted, ran = attempt.run.units.steps, len(calls)
    assert 3 <= counted < 400
    assert attempt.run.forward_began
    await driver.idle()
    assert len(calls) - ran <= 2
    assert (attempt.run.units.steps, attempt.run.units.images) == (counted, 0)


async def test_one_of_several_may_leave(driver: Driver, calls: list[int]) -> None:
    attempts = [ask(driver, seed, steps=20) for seed in range(3)]
    await attempts[0].drawn(2)
    attempts[0].task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempts[0].task
    for attempt in attempts[1:]:
        await attempt.picture()
        assert attempt.run.units.steps == 20
    assert attempts[0].run.units.steps < 20
    assert len(calls) == 20


async def test_who_leaves_before_its_turn_is_not_drawn(driver: Driver, calls: list[int]) -> None:
    first, second = ask(driver, 1, steps=40), ask(driver, 2, steps=5)
    await first.drawn(1)
    second.task.cancel()
    await first.picture()
    await driver.idle()
    assert len(calls) == 40
    assert not second.run.forward_began


async def test_without_memory_for_all_fewer_are_drawn_at_once_from_then_on(driver: Driver) -> None:
    """The fault is torch's own error, raised inside of the model for more than two images."""
    import torch

    def short(_: Any, given: Any) -> None:
        if given[0].shape[0] // 2 > most:
            raise torch.OutOfMemoryError("CUDA out of memory")

    hook = pipeline_of(driver.engine)._base.unet.register_forward_pre_hook(short)
    try:
        most = 2
        attempts = [ask(driver, seed) for seed in range(8)]
        for attempt in attempts:
            await attempt.picture()
            assert attempt.run.units.steps == 6
        assert driver.engine.gallery.most_images("sd") == 2
        most = 0
        with pytest.raises(EngineError, match=r"not enough memory .* smaller size"):
            await ask(driver, 1).output()
        most = 1
        await ask(driver, 1).picture()
    finally:
        hook.remove()
        driver.engine.gallery._most_images["sd"] = 16


async def test_a_fault_inside_of_the_model_fails_its_request_and_no_other(driver: Driver) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("expected scalar type Half but found Float")

    hook = pipeline_of(driver.engine)._base.unet.register_forward_pre_hook(broken)
    with pytest.raises(EngineError, match="could not draw this"):
        await ask(driver, 1).output()
    hook.remove()
    await ask(driver, 1).picture()
    assert driver.engine.failure() is None


async def test_numbers_that_overflow_are_no_picture(driver: Driver) -> None:
    hook = pipeline_of(driver.engine)._base.unet.register_forward_hook(lambda _, __, out: (out[0] * float("nan"),))
    with pytest.raises(EngineError, match="another precision"):
        await ask(driver, 1).output()
    hook.remove()


async def test_a_request_waits_for_company_as_long_as_its_model_says(diffusers_models: Path, tmp_path: Path) -> None:
    import msgspec

    patient = msgspec.structs.replace(SD, options={"max_batch": 2, "batch_wait_ms": 60_000})
    async with serving(diffusers_models, tmp_path, patient) as driver:
        first = ask(driver, 1)
        await asyncio.sleep(0.3)
        assert not first.run.forward_began
        second = ask(driver, 2)
        await asyncio.gather(first.output(), second.output())
        assert first.run.phases.queue_us > 250_000


async def test_a_gpu_that_has_failed_loses_the_engine(diffusers_models: Path, tmp_path: Path) -> None:
    """The error is torch's own, which no later call survives."""
    import torch

    async with serving(diffusers_models, tmp_path, SD) as driver:

        def fail(*_: Any) -> None:
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")

        pipeline_of(driver.engine)._base.unet.register_forward_pre_hook(fail)
        with pytest.raises(EngineLost):
            await ask(driver, 1).output()
        assert isinstance(driver.engine.failure(), EngineLost)
