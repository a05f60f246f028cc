"""The inputs of the tasks about sound: `text-to-speech`, `voice-clone`, `music`, `speech-to-text`.

Field names and shapes: OpenAI API reference, where it has the call.
"""

from typing import Annotated, Literal

from msgspec import Meta

from gateway.contract.inputs.fields import Guidance, MediaSource, Prompt, Seed, TaskInput

SoundFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
Speed = Annotated[float, Meta(ge=0.25, le=4)]
MAX_SOUND_S = 3_600


class SpeechInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `text-to-speech`.

    `speed` multiplies the normal rate; `pitch` runs from 0 to 100, 50 is normal.
    """

    input: Annotated[str, Meta(min_length=1, max_length=100_000)]
    voice: str | None = None
    language: str | None = None
    response_format: SoundFormat | None = None
    speed: Speed | None = None
    pitch: Annotated[int, Meta(ge=0, le=100)] | None = None
    instructions: Annotated[str, Meta(max_length=4096)] | None = None


class VoiceCloneInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `voice-clone`: a text, and a sample of the voice that is to speak it."""

    input: Annotated[str, Meta(min_length=1, max_length=20_000)]
    sample: MediaSource
    sample_text: Annotated[str, Meta(max_length=4096)] | None = None
    """What is said in the sample."""
    language: str | None = None
    response_format: SoundFormat | None = None
    speed: Speed | None = None
    seed: Seed | None = None


class MusicInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `music`."""

    prompt: Prompt
    seconds: Annotated[float, Meta(gt=0, le=MAX_SOUND_S)] | None = None
    guidance: Guidance | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    seed: Seed | None = None
    response_format: SoundFormat | None = None


class TranscriptionInput(TaskInput, frozen=True, kw_only=True):
    """The input of task `speech-to-text`."""

    file: MediaSource
    language: Annotated[str, Meta(max_length=32)] | None = None
    prompt: Annotated[str, Meta(max_length=4096)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    translate: bool = False
    """Into English."""
    timestamp_granularities: Annotated[list[Literal["word", "segment"]], Meta(max_length=2)] | None = None


DEFAULT_MUSIC_S = 10.0


def music_seconds(value: MusicInput) -> float:
    """Give the length of the music that is asked for."""
    return value.seconds or DEFAULT_MUSIC_S


SPEECH_BASE_MS = 2_000
SPEECH_MS_PER_BYTE = 1_200


def longest_speech_ms(text: str, speed: float | None) -> int:
    """Bound the milliseconds of a text that is spoken, by whichever model: engines cut off what would be longer.

    espeak-ng 1.52, measured over 23,000 code points in two languages: the slowest text takes 985 ms of audio for each
    byte of UTF-8 at normal speed (Hangul extensions; Braille 800, a long number 544, prose 58). Speed above 1 is not
    counted on to shorten pauses.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    normal = SPEECH_BASE_MS + SPEECH_MS_PER_BYTE * size
    if speed is None or speed >= 1:
        return normal
    return normal * 1000 // max(1, int(speed * 1000)) + 1
