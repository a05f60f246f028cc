"""Sounds of the fake engine: a tone whose pitch is the text's, in every format."""

import asyncio
import math
import wave
from array import array
from hashlib import blake2b
from io import BytesIO

import av

from gateway.contract.events import AudioDelta, MediaOutput
from gateway.contract.inputs import MusicInput, SpeechInput, VoiceCloneInput
from gateway.contract.inputs.speech import SoundFormat, music_seconds
from workers.engine import RefusedInput, Run
from workers.engines.fake.options import FakeOptions
from workers.engines.fake.steps import stepped

RATE = 24_000
MS_PER_CHARACTER = 50
"""How long the fake engine speaks; the ceiling counts 1,200 for each byte."""
PIECES = 8
SHORTEST_MS = 100

MEDIA_TYPES: dict[SoundFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
_CODECS: dict[SoundFormat, tuple[str, str]] = {
    "mp3": ("mp3", "libmp3lame"),
    "opus": ("ogg", "libopus"),
    "aac": ("adts", "aac"),
    "flac": ("flac", "flac"),
}

AnySoundInput = SpeechInput | VoiceCloneInput | MusicInput


async def sound(run: Run, options: FakeOptions) -> MediaOutput:
    """Make the sound of any task that makes one; to a caller who streams, it goes in a few pieces."""
    given: AnySoundInput = run.input  # type: ignore[assignment]
    text = given.prompt if isinstance(given, MusicInput) else given.input
    if isinstance(given, VoiceCloneInput) and not await run.read(given.sample):
        raise RefusedInput("The sample is empty.")
    form = given.response_format or "wav"
    samples = tone(int.from_bytes(blake2b(text.encode(), digest_size=4).digest()), _length_ms(given, text))
    with run.phases.timed("forward"):
        run.began()
        data = await asyncio.to_thread(encoded, samples, form)
        if not isinstance(given, MusicInput):
            run.units.characters += len(text)
        piece = -(-len(data) // PIECES)
        made = 0
        async for step in stepped(run, PIECES, options.interval_ms / 1000):
            if run.heard and len(data) > (step - 1) * piece:
                run.emit(AudioDelta(data[(step - 1) * piece : step * piece]))
            made, before = len(samples) // 2 * step * 1000 // (RATE * PIECES), made
            run.units.audio_ms += made - before
    return MediaOutput(MEDIA_TYPES[form], len(data), data, duration_ms=run.units.audio_ms)


def _length_ms(given: AnySoundInput, text: str) -> int:
    if isinstance(given, MusicInput):
        return int(music_seconds(given) * 1000)
    return max(SHORTEST_MS, int(MS_PER_CHARACTER * len(text) / (given.speed or 1)))


def tone(seed: int, length_ms: int) -> bytes:
    """Give the samples of a tone between 200 and 599 Hz, 16 bits, mono."""
    period = RATE // (200 + seed % 400)
    wave_ = array("h", (int(8000 * math.sin(2 * math.pi * at / period)) for at in range(period)))
    size = RATE * length_ms // 1000 * 2
    return (wave_.tobytes() * (size // (2 * period) + 1))[:size]


def frame_of(samples: bytes) -> av.AudioFrame:
    """Give samples as one frame for an encoder."""
    frame = av.AudioFrame("s16", "mono", len(samples) // 2)
    frame.planes[0].update(samples.ljust(frame.planes[0].buffer_size, b"\0"))
    frame.sample_rate = RATE
    return frame


def encoded(samples: bytes, form: SoundFormat) -> bytes:
    """Write samples as a file."""
    if form == "pcm":
        return samples
    file = BytesIO()
    if form == "wav":
        with wave.open(file, "wb") as plain:
            plain.setnchannels(1)
            plain.setsampwidth(2)
            plain.setframerate(RATE)
            plain.writeframes(samples)
        return file.getvalue()
    container_name, codec = _CODECS[form]
    with av.open(file, "w", format=container_name) as container:
        stream = container.add_stream(codec, RATE, layout="mono")
        container.mux(stream.encode(frame_of(samples)))
        container.mux(stream.encode(None))
    return file.getvalue()
