"""The engine `speech`: real speech, in every format, measured exactly."""

import asyncio
import io
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import av
import pytest

from gateway.contract.events import AudioDelta, Frame, MediaOutput
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import SpeechInput
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from workers.engine import RefusedInput, Run
from workers.engines.speech.engine import SpeechEngine

Format = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
FORMATS: tuple[Format, ...] = ("mp3", "opus", "aac", "flac", "wav", "pcm")
TEXT = "The gate opens at dawn. Every fare is counted once, and the gate closes again at night."


@pytest.fixture
async def engine() -> AsyncIterator[SpeechEngine]:
    engine = SpeechEngine(Path())
    states: dict[str, ModelState] = {}
    await engine.load([ServedModel(name="espeak-ng", tasks=["text-to-speech"])], states.__setitem__)
    assert states == {"espeak-ng": ModelState(state="ready")}
    yield engine
    await engine.unload()


class Frames(list[Frame]):
    """What a run has sent."""

    def __init__(self) -> None:
        super().__init__()
        self._enough = asyncio.Event()
        self._awaited = 0

    def add(self, _: Request, frame: Frame) -> None:
        self.append(frame)
        if len(self) >= self._awaited:
            self._enough.set()

    async def reach(self, count: int) -> None:
        self._awaited = count
        await self._enough.wait()


def prepare(*, stream: bool = False, keep: bool = False, **given: Any) -> tuple[Run, Frames]:
    request = Request(new_request_id(), 1, "espeak-ng", "text-to-speech", b"", 1, stream=stream, keep=keep)
    frames = Frames()
    return Run(request, SpeechInput(**{"input": TEXT} | given), 1, frames.add), frames


async def speak(engine: SpeechEngine, **given: Any) -> tuple[Run, bytes]:
    run, _ = prepare(**given)
    output = await engine.run(run)
    assert output.size_bytes == len(output.data)
    return run, output.data


def decoded_ms(kind: Format, data: bytes) -> float:
    """Decode a file with FFmpeg and measure how long it sounds."""
    if kind == "pcm":
        return len(data) / 2 / 24_000 * 1000
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(audio=0))
    assert len(frames[0].layout.channels) == 1
    return sum(frame.samples * 1000 / frame.sample_rate for frame in frames)


def bytes_of(frames: list[Frame]) -> bytes:
    assert [frame.seq for frame in frames] == list(range(len(frames)))
    return b"".join(frame.event.data for frame in frames if isinstance(frame.event, AudioDelta))


@pytest.mark.parametrize("kind", FORMATS)
async def test_each_format_decodes_to_the_duration_that_is_charged(engine: SpeechEngine, kind: Format) -> None:
    """The codecs mp3 and aac pad their ends; the others are exact to the millisecond."""
    run, data = await speak(engine, response_format=kind)
    assert 4000 < run.units.audio_ms < 9000
    padding_ms = 120 if kind in ("mp3", "aac") else 2
    assert decoded_ms(kind, data) == pytest.approx(run.units.audio_ms, abs=padding_ms)
    assert run.units.characters == len(TEXT)


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_stream_in_each_format_sounds_as_long_as_the_whole_file(engine: SpeechEngine, kind: Format) -> None:
    run, frames = prepare(stream=True, response_format=kind)
    await engine.run(run)
    assert len(frames) > 3
    padding_ms = 120 if kind in ("mp3", "aac") else 2
    assert decoded_ms(kind, bytes_of(frames)) == pytest.approx(run.units.audio_ms, abs=padding_ms)


async def test_speech_begins_to_stream_before_it_is_complete(engine: SpeechEngine) -> None:
    shares = []
    for _ in range(3):
        run, frames = prepare(stream=True, response_format="mp3", input=TEXT * 40)
        task = asyncio.ensure_future(engine.run(run))
        began = time.perf_counter()
        await frames.reach(1)
        first_s, whole = time.perf_counter() - began, task.done()
        await task
        shares.append(1.0 if whole else first_s / (time.perf_counter() - began))
        if shares[-1] < 1 / 3:  # else the machine may have paused
            break
    assert min(shares) < 1 / 3


async def test_the_header_of_a_streamed_wav_says_that_its_length_is_unknown(engine: SpeechEngine) -> None:
    run, frames = prepare(stream=True, response_format="wav")
    await engine.run(run)
    header = bytes_of(frames)[:44]
    assert header[:4] + header[8:16] + header[36:40] == b"RIFFWAVEfmt data"
    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"


async def test_the_header_of_a_whole_wav_states_its_length(engine: SpeechEngine) -> None:
    _, data = await speak(engine, response_format="wav")
    assert int.from_bytes(data[4:8], "little") == len(data) - 8
    assert int.from_bytes(data[40:44], "little") == len(data) - 44


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
async def test_speed_multiplies_the_rate(engine: SpeechEngine, speed: float) -> None:
    normal, _ = await speak(engine, response_format="pcm")
    changed, data = await speak(engine, response_format="pcm", speed=speed)
    assert changed.units.audio_ms == pytest.approx(normal.units.audio_ms / speed, rel=0.15)
    assert decoded_ms("pcm", data) == pytest.approx(changed.units.audio_ms, abs=2)


def crossings_per_s(pcm: bytes) -> float:
    """Count how often a sound crosses zero: more for a higher voice."""
    samples = memoryview(pcm).cast("h").tolist()
    crossed = sum((one < 0) != (other < 0) for one, other in pairwise(samples))
    return crossed / (len(samples) / 24_000)


async def test_pitch_raises_the_voice(engine: SpeechEngine) -> None:
    _, low = await speak(engine, response_format="pcm", pitch=0, input="Oh no, oh no, oh no.")
    _, high = await speak(engine, response_format="pcm", pitch=100, input="Oh no, oh no, oh no.")
    assert crossings_per_s(high) > 1.2 * crossings_per_s(low)


async def test_voices_and_languages_differ(engine: SpeechEngine) -> None:
    spoken = [
        (await speak(engine, response_format="pcm", input="Guten Morgen, eins zwei drei.", **choice))[1]
        for choice in (
            {},
            {"voice": "alloy"},
            {"voice": "onyx"},
            {"language": "de"},
            {"voice": "alloy", "language": "de"},
            {"voice": "English (Great Britain)"},
            {"voice": "fr+f3"},
        )
    ]
    assert len(set(spoken)) == len(spoken)


async def test_the_same_request_speaks_in_the_same_language_whatever_came_before(engine: SpeechEngine) -> None:
    before, _ = await speak(engine, response_format="pcm", voice="de")
    await speak(engine, response_format="pcm", voice="ja", speed=3.0, pitch=90)
    after, _ = await speak(engine, response_format="pcm", voice="de")
    assert after.units.audio_ms == pytest.approx(before.units.audio_ms, rel=0.01)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"voice": "nobody"}, ["nobody", "alloy", "en-us", "f3"]),
        ({"voice": "en-us+nobody"}, ["nobody", "alloy", "en-us", "f3"]),
        ({"language": "xx-nowhere"}, ["xx-nowhere", "en-us", "pt-br"]),
        ({"voice": "de", "language": "fr"}, ["'de'", "'fr'"]),
    ],
)
async def test_an_unknown_voice_or_language_is_refused_and_told_what_exists(
    engine: SpeechEngine, given: dict[str, str], named: list[str]
) -> None:
    run, _ = prepare(**given)
    with pytest.raises(RefusedInput) as refused:
        await engine.run(run)
    assert all(name in str(refused.value) for name in named)
    assert not run.forward_began


@pytest.mark.parametrize("text", ["...", "   ", "\n"])
async def test_an_input_without_words_is_refused(engine: SpeechEngine, text: str) -> None:
    run, _ = prepare(input=text)
    with pytest.raises(RefusedInput, match="nothing to say"):
        await engine.run(run)


async def test_a_cancelled_request_stops_and_counts_what_it_had_spoken(engine: SpeechEngine) -> None:
    took_s = []
    for _ in range(3):  # the quickest counts: a machine may pause
        run, frames = prepare(stream=True, response_format="pcm", input=TEXT * 200)
        task = asyncio.ensure_future(engine.run(run))
        await frames.reach(20)
        assert engine.capacity() == 0
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took_s.append(time.perf_counter() - began)
        assert engine.capacity() == 1
    assert min(took_s) < 0.2
    await asyncio.sleep(0.01)
    sent_ms = decoded_ms("pcm", bytes_of(frames))
    assert run.units.audio_ms == pytest.approx(sent_ms, abs=5)
    assert 0 < run.units.characters < len(TEXT * 200) / 2
    counted = run.units.audio_ms
    await asyncio.sleep(0.1)
    assert run.units.audio_ms == counted


async def test_what_is_kept_is_not_sent_piece_by_piece(engine: SpeechEngine) -> None:
    run, frames = prepare(keep=True)
    output = await engine.run(run)
    assert isinstance(output, MediaOutput)
    assert (output.media_type, frames) == ("audio/mpeg", [])


async def test_requests_at_once_do_not_disturb_each_other(engine: SpeechEngine) -> None:
    """The library is not made for several threads; requests that come together wait for each other."""
    alone, _ = await speak(engine, response_format="pcm")
    together = await asyncio.gather(*(speak(engine, response_format="pcm") for _ in range(6)))
    for run, data in together:
        assert run.units.audio_ms == pytest.approx(alone.units.audio_ms, rel=0.01)
        assert decoded_ms("pcm", data) == pytest.approx(run.units.audio_ms, abs=2)


async def test_a_model_with_an_unknown_voice_is_reported_failed() -> None:
    engine = SpeechEngine(Path())
    states: dict[str, ModelState] = {}
    model = ServedModel(name="m", tasks=["text-to-speech"], options={"voice": "nobody"})
    await engine.load([model], states.__setitem__)
    assert states["m"].state == "failed"
    assert "nobody" in states["m"].detail
    await engine.unload()
