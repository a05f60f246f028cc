"""Music by MusicGen: as long as asked for, second by second, and stopped within a step."""

import asyncio
import time

import numpy as np
import pytest

from tests.engines.speech_driver import Driver, decoded
from workers.engine import RefusedInput

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and transformers themselves

PROMPT = "A slow song about rain"


@pytest.mark.parametrize("seconds", [0.5, 1.237, 3.0])
async def test_music_has_exactly_the_length_that_is_asked_for(speech: Driver, seconds: float) -> None:
    attempt = speech.start("tiny-musicgen", "music", prompt=PROMPT, seconds=seconds, response_format="wav")
    samples, rate, _ = decoded(await attempt.sound())
    assert rate == 16_000
    assert len(samples) == int(seconds * 1000) * rate // 1000
    assert attempt.run.units.audio_ms == int(seconds * 1000)
    assert np.abs(samples).max() > 100, "of 32,767: it can be heard"


@pytest.mark.parametrize(("kind", "rate"), [("mp3", 16_000), ("opus", 48_000), ("flac", 16_000), ("aac", 16_000)])
async def test_music_comes_in_each_format(speech: Driver, kind: str, rate: int) -> None:
    attempt = speech.start("tiny-musicgen", "music", prompt=PROMPT, seconds=1, response_format=kind)
    samples, found, _ = decoded(await attempt.sound())
    assert found == rate
    assert len(samples) / rate == pytest.approx(1.0, abs=0.15)


async def test_it_tells_of_each_second(speech: Driver) -> None:
    attempt = speech.start("tiny-musicgen", "music", keep=True, prompt=PROMPT, seconds=4)
    await attempt.sound()
    assert attempt.progress == pytest.approx([0.25, 0.5, 0.75, 1.0])


async def test_the_seed_decides_and_is_told(speech: Driver) -> None:
    def music(**given: object) -> dict[str, object]:
        return {"prompt": PROMPT, "seconds": 1, "response_format": "wav"} | given

    first = await speech.start("tiny-musicgen", "music", **music()).sound()
    again = await speech.start("tiny-musicgen", "music", **music(seed=first.seed)).sound()
    assert again.data == first.data
    other = await speech.start("tiny-musicgen", "music", **music(seed=1)).sound()
    assert other.data != first.data
    greedy = [await speech.start("tiny-musicgen", "music", **music(temperature=0)).sound() for _ in range(2)]
    assert greedy[0].data == greedy[1].data
    assert greedy[0].data != first.data


async def test_guidance_changes_the_music(speech: Driver) -> None:
    made = [
        await speech.start(
            "tiny-musicgen", "music", prompt=PROMPT, seconds=1, seed=3, guidance=guidance, response_format="wav"
        ).sound()
        for guidance in (0.0, 10.0)
    ]
    assert made[0].data != made[1].data


async def test_a_cancelled_piece_stops_within_a_step_and_counts_what_was_made(speech: Driver) -> None:
    took_s = []
    for _ in range(3):
        attempt = speech.start("tiny-musicgen", "music", keep=True, prompt=PROMPT, seconds=30)
        while not attempt.progress:
            await asyncio.sleep(0.01)
        began = time.perf_counter()
        attempt.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt.task
        took_s.append(time.perf_counter() - began)
        if took_s[-1] < 1.0:  # else the machine may have paused
            break
    assert min(took_s) < 1.0
    attempt.check()
    assert attempt.run.forward_began
    assert 1000 <= attempt.run.units.audio_ms < 30_000


async def test_what_it_cannot_do_is_refused(speech: Driver) -> None:
    with pytest.raises(RefusedInput, match="seconds: this model makes at most 30 seconds"):
        await speech.start("tiny-musicgen", "music", prompt=PROMPT, seconds=31).task
    with pytest.raises(RefusedInput, match="prompt: it has more than the 512 tokens"):
        await speech.start("tiny-musicgen", "music", prompt="rain " * 600, seconds=1).task
