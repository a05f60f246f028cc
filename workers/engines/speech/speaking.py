"""What the families that speak share: a text is spoken piece by piece, each sent as soon as it is made."""

import re
from collections.abc import Callable, Iterator

import msgspec

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import SpeechInput, VoiceCloneInput
from gateway.contract.inputs.speech import longest_speech_ms
from workers.engine import RefusedInput
from workers.engines.speech.job import Job, Samples
from workers.engines.speech.track import Track, pcm_of
from workers.engines.speech.voices import OPENAI_VOICES

MOST_CHARACTERS = 300
"""Of one piece: what these models read well at once, and well within the 600 tokens of SpeechT5."""
PAUSE_MS = 150
"""Between two pieces."""
NORMAL_PITCH = 50

_FULL = r"\u3002\uff01\uff1f\uff1b"
"""The marks of Chinese and Japanese, behind which no space stands."""
_END = re.compile(rf"(?<=[.!?;:\u2026{_FULL}\n])[\"'\u201d\u2019)\]]*\s+|(?<=[{_FULL}])")


class Piece(msgspec.Struct, frozen=True):
    """A part of a text, and where in the text it ends."""

    text: str
    end: int


def pieces_of(text: str, most: int = MOST_CHARACTERS) -> Iterator[Piece]:
    """Cut a text behind its sentences, and a long sentence between words; the pieces together are the text."""
    start = 0
    for end in [*(found.end() for found in _END.finditer(text)), len(text)]:
        while end - start > most:
            space = text.rfind(" ", start + 1, start + most)
            cut = space + 1 if space > start else start + most
            yield Piece(text[start:cut], cut)
            start = cut
        if end > start:
            yield Piece(text[start:end], end)
            start = end


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a model speaks: its rate in Hz, whether the sound is still to be stretched to the speed, and its seed."""

    rate: int
    stretch: bool = True
    seed: int | None = None


def speak(
    job: Job, given: SpeechInput | VoiceCloneInput, manner: Manner, synthesise: Callable[[str], Samples | None]
) -> MediaOutput:
    """Speak a text by a function that makes the samples of one piece, or None where the piece has no words.

    Characters are counted with each piece. Nothing is made beyond the length that was quoted.
    """
    text = given.input
    most_ms = longest_speech_ms(text, given.speed)
    tempo = (given.speed or 1.0) if manner.stretch else 1.0
    track = Track(job, given.response_format or "mp3", manner.rate, most_ms, tempo=tempo)
    pause = bytes(2 * (manner.rate * PAUSE_MS // 1000))
    spoken = False
    for piece in pieces_of(text):
        job.check()
        samples = synthesise(piece.text)
        if samples is not None:
            track.write((pause if spoken else b"") + pcm_of(samples))
            spoken = True
        job.run.units.characters = piece.end
        job.progress(piece.end / len(text))
        if track.full:
            break
    output = track.close(speech=True, seed=manner.seed)
    job.run.units.characters = len(text)
    return output


def check_manner(given: SpeechInput | VoiceCloneInput, language: str | None) -> None:
    """Refuse what a model of one language and one pitch cannot do. Raises RefusedInput, which names the field."""
    if given.language is not None and given.language.lower() != (language or "").lower():
        known = f"speaks {language}" if language else "speaks one language only"
        raise RefusedInput(f"language: this model {known}: leave the language out.")
    if isinstance(given, SpeechInput) and given.pitch not in (None, NORMAL_PITCH):
        raise RefusedInput("pitch: this model has no other pitch: leave it out.")


def speaker_of(voice: str | None, count: int) -> int:
    """Give the number of a speaker, of so many: by number, or by a name that OpenAI's clients send.

    Raises RefusedInput, which tells what there is.
    """
    if voice is None:
        return 0
    if voice.lower() in OPENAI_VOICES:
        return list(OPENAI_VOICES).index(voice.lower()) % count
    if voice.isdecimal() and int(voice) < count:
        return int(voice)
    numbers = f"0 to {count - 1}" if count > 1 else "0"
    raise RefusedInput(f"voice: there is no voice {voice[:64]!r}: say {numbers}, or {', '.join(OPENAI_VOICES)}.")
