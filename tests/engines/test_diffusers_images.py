"""Images by the real diffusers: every task is opened, measured, and held against what was asked for."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from gateway.contract.events import GalleryOutput, MediaOutput
from tests.engines.diffusers_driver import PIX2PIX, SD, UPSCALE, Driver, bomb, encoded, gradient, opened, serving
from workers.engine import RefusedInput

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.filterwarnings("ignore")]

STEPS = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(tmp_path_factory: pytest.TempPathFactory, diffusers_models: Path) -> AsyncIterator[Driver]:
    async with serving(diffusers_models, tmp_path_factory.mktemp("media"), SD, PIX2PIX, UPSCALE) as made:
        assert [made.state(name) for name in ("sd", "pix2pix", "upscale")] == ["ready"] * 3, made.states
        yield made


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
async def test_an_image_has_the_size_the_format_and_the_units_that_it_says(driver: Driver, kind: str) -> None:
    attempt = driver.ask(
        "sd", "text-to-image", prompt="a gate", size="96x64", steps=STEPS, seed=5, output_format=kind, keep=True
    )
    picture = await attempt.picture()
    assert picture.size == (96, 64)
    assert np.asarray(picture).std() > 10, "something was drawn"
    units = attempt.run.units
    assert (units.images, units.pixels, units.steps) == (1, 96 * 64, STEPS)
    output = attempt.task.result()
    assert isinstance(output, MediaOutput)
    assert output.seed == 5
    assert attempt.fractions == [at / STEPS for at in range(1, STEPS + 1)]


async def test_the_same_seed_gives_the_same_image_and_another_gives_another(driver: Driver) -> None:
    asked: dict[str, Any] = {"prompt": "a gate", "size": "64x64", "steps": STEPS}
    one, same, other = [
        np.asarray(await driver.ask("sd", "text-to-image", seed=seed, **asked).picture()) for seed in (5, 5, 6)
    ]
    assert np.abs(one.astype(int) - same).max() <= 1
    assert np.abs(one.astype(int) - other).max() > 20


async def test_several_images_are_each_of_the_next_seed(driver: Driver) -> None:
    asked: dict[str, Any] = {"prompt": "a gate", "size": "64x64", "steps": STEPS}
    attempt = driver.ask("sd", "text-to-image", seed=5, n=3, **asked)
    output = await attempt.output()
    assert isinstance(output, GalleryOutput)
    assert [item.seed for item in output.items] == [5, 6, 7]
    alone = np.asarray(await driver.ask("sd", "text-to-image", seed=7, **asked).picture())
    assert np.abs(np.asarray(opened(output.items[2])).astype(int) - alone).max() <= 1
    assert (attempt.run.units.images, attempt.run.units.steps) == (3, 3 * STEPS)
    assert attempt.run.units.pixels == 3 * 64 * 64


async def test_guidance_and_a_negative_prompt_change_the_image(driver: Driver) -> None:
    asked: dict[str, Any] = {"prompt": "a gate", "size": "64x64", "steps": STEPS, "seed": 5}
    drawn = [
        np.asarray(await driver.ask("sd", "text-to-image", **asked, **more).picture()).astype(int)
        for more in ({}, {"guidance": 1.0}, {"negative_prompt": "water"}, {"style": "vivid"})
    ]
    assert all(np.abs(drawn[0] - other).max() > 1 for other in drawn[1:])


async def test_a_lower_quality_runs_and_counts_fewer_steps(driver: Driver) -> None:
    attempt = driver.ask("sd", "text-to-image", prompt="a", size="64x64", steps=8, quality="low")
    await attempt.picture()
    assert attempt.run.units.steps == 4


async def test_previews_are_sent_to_a_caller_who_streams(driver: Driver) -> None:
    asked: dict[str, Any] = {"prompt": "a", "size": "64x64", "steps": 6, "partial_images": 2}
    attempt = driver.ask("sd", "text-to-image", stream=True, **asked)
    await attempt.picture()
    assert [(each.preview, each.index, each.media_type) for each in attempt.previews] == [
        (0, 0, "image/png"),
        (1, 0, "image/png"),
    ]
    assert [
        opened(MediaOutput("image/png", len(each.data), each.data, width=64, height=64)) for each in attempt.previews
    ]
    unwatched = driver.ask("sd", "text-to-image", keep=True, **asked)
    await unwatched.picture()
    assert unwatched.previews == []


@pytest.mark.parametrize(
    ("model", "task", "more"),
    [
        ("sd", "image-edit", {"prompt": "a river", "strength": 0.5}),
        ("sd", "image-relight", {"direction": "left", "strength": 0.5}),
        ("sd", "image-restyle", {"prompt": "as a woodcut", "strength": 0.5}),
    ],
)
async def test_a_picture_drawn_over_follows_its_size_and_counts_only_the_steps_that_ran(
    driver: Driver, model: str, task: Any, more: dict[str, Any]
) -> None:
    """A strength of a half runs half of the steps."""
    attempt = driver.ask(model, task, image=driver.picture(100, 70), steps=8, **more)
    picture = await attempt.picture()
    assert picture.size == (96, 64), "rounded down to a multiple of 8"
    assert attempt.run.units.steps == 4
    assert attempt.run.units.pixels == 96 * 64


async def test_strength_says_how_much_of_a_picture_stays(driver: Driver) -> None:
    source = np.asarray(gradient(64, 64)).astype(int)
    far = []
    for strength in (0.1, 1.0):
        attempt = driver.ask(
            "sd", "image-restyle", prompt="a", image=driver.picture(), steps=10, strength=strength, seed=1
        )
        far.append(np.abs(np.asarray(await attempt.picture()).astype(int) - source).mean())
        assert attempt.run.units.steps == round(10 * strength)
    assert far[0] != far[1]


async def test_an_edit_by_instruction_runs_all_steps(driver: Driver) -> None:
    attempt = driver.ask(
        "pix2pix", "image-edit", prompt="make it blue", image=driver.picture(), steps=STEPS, image_guidance=1.2
    )
    assert (await attempt.picture()).size == (64, 64)
    assert attempt.run.units.steps == STEPS


@pytest.mark.parametrize("model", ["sd", "pix2pix"])
async def test_a_mask_protects_what_it_does_not_choose(driver: Driver, model: str) -> None:
    """The left half is opaque in the mask, and stays: to the pixel with a model that takes no masks itself."""
    hole = gradient(64, 64).convert("RGBA")
    hole.putalpha(255)
    hole.paste((0, 0, 0, 0), (32, 0, 64, 64))
    attempt = driver.ask(
        model,
        "image-edit",
        prompt="a river",
        image=driver.picture(),
        mask=driver.media(f"hole-{model}.png", encoded(hole), width=64, height=64),
        steps=STEPS,
        seed=1,
    )
    changed = np.abs(np.asarray(await attempt.picture()).astype(int) - np.asarray(gradient(64, 64)))
    assert changed[:, 34:].mean() > 20
    if model == "pix2pix":
        assert changed[:, :30].max() <= 1


async def test_a_blend_begins_with_what_its_weights_say(driver: Driver) -> None:
    from workers.engines.diffusers.tasks import TASKS

    pictures = [driver.picture(64, 64, hue=0), driver.picture(64, 64, hue=200)]
    attempt = driver.ask("sd", "image-blend", images=pictures, weights=[0.75, 0.25], prompt="a", steps=STEPS)
    assert (await attempt.picture()).size == (64, 64)
    files = {"images": [encoded(gradient(64, 64, hue)) for hue in (0, 200)]}
    drawing = TASKS["image-blend"].draw(attempt.run.input, files)
    assert np.asarray(drawing.pictures[0])[0, 0, 2] == 50


async def test_light_comes_from_the_side_that_is_asked_for() -> None:
    from workers.engines.diffusers.tasks.image_relight import LIGHTS, lit

    grey = gradient(33, 33).point(lambda _: 100)
    bright = {side: np.asarray(lit(grey, side)).astype(int)[:, :, 0] for side in LIGHTS}
    assert bright["left"][16, 0] > bright["left"][16, -1]
    assert bright["right"][16, 0] < bright["right"][16, -1]
    assert bright["top"][0, 16] > bright["top"][-1, 16]
    assert bright["bottom"][0, 16] < bright["bottom"][-1, 16]
    assert bright["front"][16, 16] > bright["front"][0, 0]
    assert bright["back"][16, 16] < bright["back"][0, 0]


@pytest.mark.parametrize(("scale", "size"), [(None, (160, 120)), (2, (80, 60)), (4, (160, 120))])
async def test_an_upscale_is_exactly_so_many_times_as_large(
    driver: Driver, scale: int | None, size: tuple[int, int]
) -> None:
    attempt = driver.ask("upscale", "image-upscale", image=driver.picture(40, 30), scale=scale, steps=2, keep=True)
    assert (await attempt.picture()).size == size
    assert (attempt.run.units.steps, attempt.run.units.pixels) == (2, size[0] * size[1])
    assert attempt.fractions == [0.5, 1.0]


@pytest.mark.parametrize(
    ("model", "task", "given", "named"),
    [
        ("sd", "text-to-image", {"prompt": "a", "size": "100x64"}, "size .* multiples of 8 .* 96x64"),
        ("sd", "text-to-image", {"prompt": "a", "background": "transparent"}, "background"),
        ("sd", "text-to-image", {"prompt": "a", "quality": "superb"}, "quality must be one of"),
        ("sd", "image-edit", {"prompt": "a", "image": "broken"}, "image is not an image"),
        ("sd", "image-edit", {"prompt": "a", "image": "bomb"}, "image has more than"),
        ("sd", "image-edit", {"prompt": "a", "image": "good", "mask": "broken"}, "mask is not an image"),
        ("sd", "image-edit", {"prompt": "a", "image": "good", "mask": "small"}, "mask must have the size of image"),
        ("sd", "image-edit", {"prompt": "a", "image": "good", "image_guidance": 2.0}, "image_guidance means nothing"),
        ("sd", "image-restyle", {"prompt": "a", "image": "good", "strength": 0.1, "steps": 5}, "strength .* 0.2"),
        ("pix2pix", "image-edit", {"prompt": "a", "image": "good", "strength": 0.5}, "strength means nothing"),
        ("sd", "image-blend", {"images": ["good", "good"], "weights": [1.0]}, "weights"),
        ("sd", "image-blend", {"images": ["good", "broken"]}, r"images\[1\]"),
        ("upscale", "image-upscale", {"image": "good", "scale": 8}, "scale must be at most 4"),
        ("upscale", "image-upscale", {"image": "good", "size": "64x64"}, "size follows"),
        ("upscale", "text-to-image", {"prompt": "a"}, "does not do the task text-to-image"),
    ],
)
async def test_what_a_model_cannot_do_is_refused_by_the_name_of_the_field(
    driver: Driver, model: str, task: Any, given: dict[str, Any], named: str
) -> None:
    files = {
        "good": driver.picture(),
        "small": driver.picture(32, 32),
        "broken": driver.media("broken", b"\x89PNG\r\n not at all"),
        "bomb": driver.media("bomb", bomb(9000, 9000)),
    }
    given = {
        name: [files[each] for each in value] if name == "images" else files.get(str(value), value)
        for name, value in given.items()
    }
    attempt = driver.ask(model, task, **{"steps": 2} | given)
    with pytest.raises(RefusedInput, match=named):
        await attempt.output()
    assert attempt.run.units.steps == 0


async def test_an_alpha_channel_is_laid_on_white_and_a_turned_photograph_stands_upright(driver: Driver) -> None:
    from workers.engines.diffusers.pictures import read_picture

    clear = gradient(8, 8).convert("RGBA")
    clear.putalpha(0)
    assert read_picture(encoded(clear), "image").getpixel((3, 3)) == (255, 255, 255)
    turned = gradient(16, 8)
    turned.getexif()[0x0112] = 6
    import io

    buffer = io.BytesIO()
    turned.save(buffer, "jpeg", exif=turned.getexif())
    assert read_picture(buffer.getvalue(), "image").size == (8, 16)


async def test_the_phases_agree_with_the_clock(driver: Driver) -> None:
    """At the best of three: what the machine does in between is nobody's."""
    given = {"prompt": "a", "image": driver.picture(), "steps": 20, "strength": 1.0, "size": "128x128"}
    shares = []
    for _ in range(3):
        attempt = driver.ask("sd", "image-edit", **given)
        await attempt.picture()
        wall_us = (time.perf_counter() - attempt.began_s) * 1e6
        phases = attempt.run.phases
        told = [phases.transfer_us, phases.preprocess_us, phases.queue_us, phases.forward_us, phases.postprocess_us]
        assert all(told)
        assert phases.load_us == 0
        shares.append(sum(told) / wall_us)
        if shares[-1] >= 0.95:
            break
    assert 0.95 <= max(shares) <= 1.05
