"""Voices made by models: VITS and SpeechT5 speak, SpeechT5 speaks as a sample does, and all of it is measured."""

import asyncio
import time
from itertools import pairwise

import numpy as np
import pytest

from gateway.contract.inputs import INPUT_TYPES
from tests.engines.speech_driver import Attempt, Driver, decoded, encoded, upload, voice
from workers.engine import RefusedInput
from workers.engines.speech.encoders import Format
from workers.engines.speech.speaking import PAUSE_MS

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and transformers themselves

TEXT = "The gate opens at dawn. Every fare is counted once, and the gate closes again at night."
SPEAKERS = ("tiny-vits", "tiny-speecht5")
FORMATS: dict[Format, str] = {
    "mp3": "mp3float",
    "opus": "opus",
    "aac": "aac",
    "flac": "flac",
    "wav": "pcm_s16le",
    "pcm": "pcm",
}
RATES: dict[str, int] = {"opus": 48_000, "pcm": 24_000}


def clone(speech: Driver, pitch: float = 120.0, *, text: str = "Hello there.", **given: object) -> Attempt:
    """Ask for a text in the voice of a sample of three seconds."""
    sample = upload(encoded(voice(3, pitch)), 3)
    asked = {"input": text, "response_format": "wav", "seed": 7} | given
    return speech.start("tiny-speecht5", "voice-clone", sample=sample["media"], files=sample["files"], **asked)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("model", SPEAKERS)
async def test_each_format_decodes_to_what_is_charged(speech: Driver, model: str, kind: Format) -> None:
    attempt = speech.start(model, "text-to-speech", input="A gate, and a fare.", response_format=kind)
    samples, rate, codec = decoded(await attempt.sound())
    assert (rate, codec) == (RATES.get(kind, 16_000), FORMATS[kind])
    padding_ms = 150 if kind in ("mp3", "aac") else 30
    assert len(samples) * 1000 / rate == pytest.approx(attempt.run.units.audio_ms, abs=padding_ms)
    assert attempt.run.units.characters == len("A gate, and a fare.")
    assert np.abs(samples).max() > 0.01, "it can be heard"


@pytest.mark.parametrize("model", SPEAKERS)
async def test_a_sentence_is_sent_as_soon_as_it_is_spoken(speech: Driver, model: str) -> None:
    attempt = speech.start(model, "text-to-speech", stream=True, input=TEXT * 3, response_format="pcm")
    counted: list[int] = []
    while not attempt.task.done():
        counted.append(len(attempt.streamed))
        await asyncio.sleep(0.01)
    output = await attempt.sound()
    assert len(set(counted)) > 3, "it comes bit by bit"
    assert b"".join(attempt.streamed) == output.data
    assert attempt.progress[-1] == 1.0
    assert all(one < other for one, other in pairwise(attempt.progress))


@pytest.mark.parametrize(("model", "within"), [("tiny-vits", 0.15), ("tiny-speecht5", 0.02)])
async def test_speed_multiplies_the_rate(speech: Driver, model: str, within: float) -> None:
    """VITS has a rate of its own, rounded to frames; what others make is stretched."""
    lengths: dict[float, float] = {}
    for speed in (0.25, 1.0, 2.0):
        given = {"input": "A gate", "response_format": "wav", "speed": speed}
        attempt = clone(speech, text="A gate", speed=speed) if model != SPEAKERS[0] else None
        attempt = attempt or speech.start(model, "text-to-speech", **given)
        await attempt.sound()
        lengths[speed] = attempt.run.units.audio_ms
    assert lengths[0.25] == pytest.approx(4 * lengths[1.0], rel=within)
    assert lengths[2.0] == pytest.approx(lengths[1.0] / 2, rel=2 * within)


async def test_a_cloned_voice_follows_its_sample(speech: Driver) -> None:
    """The same text and seed: the same sample gives the same sound, another sample another."""
    one, again, other = [decoded(await clone(speech, pitch).sound())[0] for pitch in (110.0, 110.0, 260.0)]
    assert np.array_equal(one, again)
    shortest = min(len(one), len(other))
    assert not np.allclose(one[:shortest], other[:shortest], atol=1e-3)


async def test_a_cloned_voice_follows_its_seed_and_tells_it(speech: Driver) -> None:
    first = await clone(speech, seed=None).sound()
    assert first.seed is not None
    assert (await clone(speech, seed=first.seed).sound()).data == first.data
    assert (await clone(speech, seed=8).sound()).data != first.data


@pytest.mark.parametrize("kind", ["wav", "mp3", "flac", "opus", "aac"])
async def test_a_sample_may_have_any_format(speech: Driver, kind: Format) -> None:
    data = encoded(voice(3, 150), kind)
    sample = upload(data, 3, "audio/whatever")
    attempt = speech.start(
        "tiny-speecht5", "voice-clone", input="Hello.", sample=sample["media"], files=sample["files"]
    )
    await attempt.sound()
    assert attempt.run.phases.transfer_us >= 0
    assert attempt.run.phases.preprocess_us > 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"RIFF....WAVEnot a sound at all", "no sound that can be read"),
        (encoded(voice(3, 120))[:40], "no sound that can be read"),
        (encoded(voice(0.2, 120)), "too short"),
        (encoded(voice(11, 120)), "too long"),
        (encoded(voice(3, 120) * 0), "nothing can be heard"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "no sound that can be read"),
    ],
)
async def test_a_sample_that_cannot_be_used_is_refused(speech: Driver, data: bytes, words: str) -> None:
    sample = upload(data, 3)
    attempt = speech.start(
        "tiny-speecht5", "voice-clone", input="Hello.", sample=sample["media"], files=sample["files"]
    )
    with pytest.raises(RefusedInput, match=f"^sample: .*{words}"):
        await attempt.task
    assert not attempt.run.forward_began
    assert attempt.run.units.audio_ms == 0
    assert speech.engine.capacity() == 1


@pytest.mark.parametrize("model", SPEAKERS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"voice": "nobody"}, "voice: there is no voice 'nobody'"),
        ({"language": "fr"}, "language: this model speaks"),
        ({"pitch": 90}, "pitch: "),
        ({"input": "... ?!"}, "nothing to say"),
    ],
)
async def test_what_a_model_cannot_do_is_refused(speech: Driver, model: str, given: dict[str, str], words: str) -> None:
    attempt = speech.start(model, "text-to-speech", **{"input": TEXT} | given)
    with pytest.raises(RefusedInput, match=words):
        await attempt.task


async def test_the_names_that_openais_clients_send_are_taken(speech: Driver) -> None:
    for model in SPEAKERS:
        await speech.start(model, "text-to-speech", input="Hi.", voice="alloy").sound()
    await speech.start("tiny-vits", "text-to-speech", input="Hi.", language="en").sound()


@pytest.mark.parametrize("model", SPEAKERS)
async def test_the_phases_account_for_the_time_it_took(speech: Driver, model: str) -> None:
    """At the best of five: what the machine does in between is nobody's."""
    missing = []
    for _ in range(5):
        attempt = speech.start(model, "text-to-speech", input=TEXT)
        await attempt.sound()
        missing.append(attempt.took_s - attempt.accounted_s - 0.05 * attempt.took_s)
        if missing[-1] <= 0.002:
            break
    assert min(missing) <= 0.002


@pytest.mark.parametrize("model", SPEAKERS)
async def test_a_cancelled_speech_stops_within_a_step(speech: Driver, model: str) -> None:
    took_s = []
    for _ in range(3):
        attempt = speech.start(model, "text-to-speech", stream=True, input=TEXT * 100, response_format="pcm")
        while not attempt.streamed:
            await asyncio.sleep(0.01)
        assert speech.engine.capacity() == 0
        began = time.perf_counter()
        attempt.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt.task
        took_s.append(time.perf_counter() - began)
        if took_s[-1] < 1.0:  # else the machine may have paused
            break
    assert min(took_s) < 1.0, "a sentence alone takes longer on this machine"
    attempt.check()
    counted = attempt.run.units.audio_ms
    assert counted > 0
    assert 0 < attempt.run.units.characters < len(TEXT * 100)
    await asyncio.sleep(0.1)
    assert attempt.run.units.audio_ms == counted
    assert speech.engine.capacity() == 1


async def test_a_request_that_waits_for_the_thread_counts_it_as_queue_and_can_be_cancelled(speech: Driver) -> None:
    first = speech.start("tiny-vits", "text-to-speech", input=TEXT)
    second = speech.start("tiny-vits", "text-to-speech", input=TEXT)
    third = speech.start("tiny-vits", "text-to-speech", input=TEXT)
    for _ in range(5):
        await asyncio.sleep(0)
    third.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await third.task
    assert not third.run.forward_began
    await first.sound()
    await second.sound()
    assert second.run.phases.queue_us > first.run.phases.forward_us / 2


async def test_a_speech_is_cut_off_at_the_length_that_was_quoted(speech: Driver) -> None:
    """A model of random weights may never end; nothing it makes beyond the quote is delivered or charged."""
    attempt = speech.start("tiny-speecht5", "text-to-speech", input=". ".join("abcdefgh"), response_format="wav")
    await attempt.sound()
    assert attempt.run.units.audio_ms <= attempt.most.audio_ms


async def test_a_pause_stands_between_sentences(speech: Driver) -> None:
    samples, rate, _ = decoded(
        await speech.start("tiny-vits", "text-to-speech", input="One two. Three four.", response_format="wav").sound()
    )
    silent = np.flatnonzero(np.convolve(samples == 0, np.ones(rate * PAUSE_MS // 1000), "valid") >= rate * 0.149)
    assert len(silent)


async def test_a_task_that_a_model_does_not_do_is_refused(speech: Driver) -> None:
    attempt = speech.start("tiny-vits", "music", prompt="A song.")
    with pytest.raises(RefusedInput, match="does no music; it does text-to-speech"):
        await attempt.task
    assert set(INPUT_TYPES) > {"music"}
