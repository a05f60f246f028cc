"""Speech to text by Whisper: shape, languages, times, long sounds, silence, and what is refused."""

import asyncio
import time
from itertools import pairwise
from typing import Any

import pytest

from gateway.contract.events import Segment, TranscriptOutput
from tests.engines.speech_driver import Attempt, Driver, encoded, upload, voice
from workers.engine import RefusedInput
from workers.engines.speech.encoders import Format

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and transformers themselves


def listen(speech: Driver, seconds: float = 4.0, kind: Format = "wav", **given: Any) -> Attempt:
    """Have a voice transcribed."""
    file = upload(encoded(voice(seconds, 140), kind), seconds, "audio/pcm" if kind == "pcm" else "audio/x")
    return speech.start("tiny-whisper", "speech-to-text", keep=True, file=file["media"], files=file["files"], **given)


async def transcript(attempt: Attempt) -> TranscriptOutput:
    output = await attempt.output()
    assert isinstance(output, TranscriptOutput)
    return output


def in_order(parts: list[Segment], length_ms: int) -> bool:
    """Whether parts lie within the sound, one behind the other."""
    inside = all(0 <= part.start_ms <= part.end_ms <= length_ms for part in parts)
    return inside and all(one.start_ms <= other.start_ms for one, other in pairwise(parts))


@pytest.mark.parametrize("kind", ["wav", "mp3", "flac", "opus", "aac", "pcm"])
async def test_a_sound_of_any_format_becomes_text(speech: Driver, kind: Format) -> None:
    attempt = listen(speech, 4.0, kind)
    heard = await transcript(attempt)
    assert heard.text == " ".join(segment.text for segment in heard.segments)
    assert heard.segments
    assert in_order(heard.segments, heard.duration_ms)
    assert heard.language in ("en", "de", "fr")
    assert heard.words == []
    assert heard.duration_ms == pytest.approx(4000, abs=150)
    assert attempt.run.units.audio_ms == pytest.approx(4000, abs=60)
    assert attempt.run.phases.preprocess_us > 0


async def test_words_come_with_their_times_where_asked(speech: Driver) -> None:
    heard = await transcript(listen(speech, timestamp_granularities=["word", "segment"], temperature=0))
    assert " ".join(word.text for word in heard.words).split() == heard.text.split()
    assert in_order(heard.words, heard.duration_ms)


async def test_a_long_sound_is_heard_window_by_window(speech: Driver) -> None:
    attempt = listen(speech, 75.0)
    heard = await transcript(attempt)
    assert len(heard.segments) > 1
    assert in_order(heard.segments, 75_000)
    assert attempt.run.units.audio_ms == 75_000
    assert len(attempt.progress) >= 2
    assert all(0 < one < other <= 1 for one, other in pairwise(attempt.progress))


async def test_language_task_prompt_and_temperature_matter(speech: Driver) -> None:
    plain = await transcript(listen(speech, language="en"))
    assert plain == await transcript(listen(speech, language="en-US", temperature=0))
    german = await transcript(listen(speech, language="de"))
    assert german.language == "de"
    translated = await transcript(listen(speech, language="de", translate=True))
    assert translated.language == "en"
    prompted = await transcript(listen(speech, language="en", prompt="The gate at night. " * 200))
    warm = await transcript(listen(speech, language="en", temperature=1.0))
    assert len({each.text for each in (plain, german, prompted, warm)}) >= 3


async def test_silence_is_heard_as_nothing_and_costs_its_length(speech: Driver) -> None:
    file = upload(encoded(voice(2, 100) * 0), 2)
    attempt = speech.start("tiny-whisper", "speech-to-text", file=file["media"], files=file["files"], language="de")
    assert await transcript(attempt) == TranscriptOutput("", "de", 2000)
    assert attempt.run.units.audio_ms == 2000
    assert not attempt.run.forward_began


async def test_no_more_is_charged_than_the_length_that_was_known_before(speech: Driver) -> None:
    """A header may say less than the sound has; the hold was made by what was found out before."""
    file = upload(encoded(voice(4, 140)), 3.5)
    attempt = speech.start("tiny-whisper", "speech-to-text", file=file["media"], files=file["files"])
    heard = await transcript(attempt)
    assert (heard.duration_ms, attempt.run.units.audio_ms) == (4000, 3500)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00" * 5000, "no sound that can be read"),
        (encoded(voice(121, 100), "mp3"), "too long: at most 120 seconds"),
        (encoded(voice(0.05, 100)), "too short"),
        (b"ffconcat version 1.0\nfile /etc/hostname\n", "no sound that can be read"),
    ],
)
async def test_a_file_that_cannot_be_used_is_refused(speech: Driver, data: bytes, words: str) -> None:
    file = upload(data, 3)
    attempt = speech.start("tiny-whisper", "speech-to-text", file=file["media"], files=file["files"])
    with pytest.raises(RefusedInput, match=f"^file: .*{words}"):
        await attempt.task
    assert not attempt.run.forward_began


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"language": "tlh"}, "^language: .*say de, en, fr"),
        ({"prompt": "<|startoftranscript|>"}, "^prompt: "),
    ],
)
async def test_what_it_cannot_do_is_refused(speech: Driver, given: dict[str, str], words: str) -> None:
    with pytest.raises(RefusedInput, match=words):
        await listen(speech, **given).task


async def test_a_cancelled_transcription_stops_within_a_step_and_counts_what_was_heard(speech: Driver) -> None:
    took_s = []
    for _ in range(3):
        attempt = listen(speech, 110.0, language="en")
        while not attempt.progress:
            await asyncio.sleep(0.005)
        began = time.perf_counter()
        attempt.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt.task
        took_s.append(time.perf_counter() - began)
        if took_s[-1] < 1.0:  # else the machine may have paused
            break
    assert min(took_s) < 1.0
    attempt.check()
    assert 0 < attempt.run.units.audio_ms < 110_000
    assert speech.engine.capacity() == 1


async def test_a_request_that_is_cancelled_while_its_sound_is_decoded_stops_at_once(speech: Driver) -> None:
    attempt = listen(speech, 110.0)
    await asyncio.sleep(0)
    attempt.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt.task
    assert not attempt.run.forward_began
    assert speech.engine.capacity() == 1
