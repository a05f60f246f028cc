"""Videos by the real diffusers: decoded frame by frame, measured, and held against what was asked for."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import pytest_asyncio

from tests.engines.diffusers_driver import LTX, UPSCALE, WAN, Driver, film_file, frames_of, serving
from workers.engine import RefusedInput

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.filterwarnings("ignore")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(tmp_path_factory: pytest.TempPathFactory, diffusers_models: Path) -> AsyncIterator[Driver]:
    async with serving(diffusers_models, tmp_path_factory.mktemp("media"), WAN, LTX, UPSCALE) as made:
        assert [made.state(name) for name in ("wan", "ltx", "upscale")] == ["ready"] * 3, made.states
        yield made


@pytest.mark.parametrize(("model", "frames"), [("wan", 9), ("wan", 8), ("ltx", 10)])
async def test_a_video_has_exactly_the_frames_that_are_asked_for(driver: Driver, model: str, frames: int) -> None:
    """Wan draws 1 and a multiple of 4, LTX of 8: what is too much is drawn, and cut off."""
    attempt = driver.ask(
        model, "text-to-video", prompt="a gate", size="64x32", frames=frames, fps=8, steps=2, seed=3, keep=True
    )
    film = await attempt.film()
    drawn = frames_of(film)
    assert (len(drawn), film.width, film.height, film.seed) == (frames, 64, 32, 3)
    assert np.std(drawn[0]) > 5, "something was drawn"
    assert film.duration_ms == -(-frames * 1000 // 8)
    units = attempt.run.units
    assert (units.pixels, units.steps, units.video_ms, units.images) == (frames * 64 * 32, 2, film.duration_ms, 0)
    assert attempt.fractions == [0.5, 1.0]


async def test_the_length_may_be_asked_for_in_seconds(driver: Driver) -> None:
    attempt = driver.ask("wan", "text-to-video", prompt="a", size="32x32", seconds=1.5, fps=6, steps=1)
    film = await attempt.film()
    assert (len(frames_of(film)), film.duration_ms) == (9, 1500)


async def test_a_picture_begins_the_video_and_gives_its_size(driver: Driver) -> None:
    attempt = driver.ask("ltx", "image-to-video", image=driver.picture(100, 70), frames=9, fps=8, steps=2, seed=1)
    film = await attempt.film()
    assert (film.width, film.height) == (96, 64), "rounded down to a multiple of 32"
    assert len(frames_of(film)) == 9
    asked = driver.ask(
        "ltx", "image-to-video", image=driver.picture(100, 70), size="64x64", prompt="a", frames=9, steps=1, seed=1
    )
    assert (await asked.film()).width == 64


@pytest.mark.parametrize("scale", [2, 4])
async def test_an_upscaled_video_keeps_its_frames_its_length_and_its_sound(driver: Driver, scale: int) -> None:
    data = film_file(3, (24, 16), fps=4, sound=True)
    video = driver.media(f"film-{scale}.mp4", data, width=24, height=16, frames=3, duration_ms=750)
    attempt = driver.ask("upscale", "video-upscale", video=video, scale=scale, steps=2, seed=1, keep=True)
    film = await attempt.film()
    assert len(frames_of(film)) == 3
    assert (film.width, film.height, film.duration_ms) == (24 * scale, 16 * scale, 750)
    with av.open(io.BytesIO(film.data)) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) >= 48_000 * 0.7
    units = attempt.run.units
    assert (units.steps, units.pixels) == (2, 3 * 24 * 16 * scale**2), "a step of all frames is one step"
    assert attempt.fractions[-1] == 1.0


@pytest.mark.parametrize(
    ("model", "task", "given", "named"),
    [
        ("wan", "text-to-video", {"prompt": "a", "size": "40x40", "frames": 5}, "size .* multiples of 16 .* 32x32"),
        ("ltx", "image-to-video", {"image": "broken", "frames": 5}, "image is not an image"),
        ("upscale", "video-upscale", {"video": "broken"}, "video is not a video"),
        ("upscale", "video-upscale", {"video": "silent"}, "video has no pictures"),
        ("wan", "image-to-video", {"image": "broken"}, "does not do the task image-to-video"),
    ],
)
async def test_what_a_model_cannot_film_is_refused_by_the_name_of_the_field(
    driver: Driver, model: str, task: Any, given: dict[str, Any], named: str
) -> None:
    files = {"broken": driver.media("broken", b"not a file"), "silent": driver.media("silent", _sound_alone())}
    attempt = driver.ask(model, task, steps=1, **{name: files.get(str(each), each) for name, each in given.items()})
    with pytest.raises(RefusedInput, match=named):
        await attempt.output()


def _sound_alone() -> bytes:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="wav") as file:
        stream = file.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        file.mux(stream.encode(frame))
    return buffer.getvalue()
