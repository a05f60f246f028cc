"""Text to speech by espeak-ng: no weights, and no torch. It has one voice at a time in a process."""

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Input, SpeechInput
from gateway.contract.inputs.speech import longest_speech_ms
from gateway.contract.tasks import Task
from workers.engine import EngineError, RefusedInput
from workers.engines.speech.family import Place, SoundLimits
from workers.engines.speech.job import Job, Stopped
from workers.engines.speech.library import Espeak, EspeakError
from workers.engines.speech.options import BadModel
from workers.engines.speech.track import Track
from workers.engines.speech.voices import Voices

NORMAL_RATE = 175
"""Words a minute at speed 1."""
SLOWEST_RATE = 80
"""The slowest that espeak-ng speaks; what is slower is stretched. Its fastest is 700, speed 4."""
NORMAL_PITCH = 50


class EspeakModel:
    """espeak-ng with the voice that a catalog entry sets. `instructions` are not followed: it has no moods."""

    tasks: frozenset[Task] = frozenset({"text-to-speech"})
    limits: SoundLimits | None = None

    def __init__(self, espeak: Espeak, voices: Voices, voice: str | None) -> None:
        self._espeak = espeak
        self._voices = voices
        self._voice = voice

    def check(self, given: Input) -> None:
        """Refuse a voice or a language that does not exist."""
        assert isinstance(given, SpeechInput)
        self._voices.resolve(given.voice or self._voice, given.language)

    def work(self, job: Job) -> MediaOutput:
        """Speak, sending the sound every 60 ms of it. The forward phase is the synthesis."""
        given = job.run.input
        assert isinstance(given, SpeechInput)
        rate = NORMAL_RATE * (given.speed or 1.0)
        most_ms = longest_speech_ms(given.input, given.speed)
        tempo = min(1.0, rate / SLOWEST_RATE)
        track = Track(job, given.response_format or "mp3", self._espeak.sample_rate, most_ms, tempo=tempo)

        def heard(samples: bytes, characters: int) -> bool:
            if job.stopped:
                return False
            track.write(samples)
            job.run.units.characters = characters
            return True

        try:
            with job.phase("forward"):
                ended = self._espeak.speak(
                    given.input,
                    voice=self._voices.resolve(given.voice or self._voice, given.language),
                    rate=round(max(rate, SLOWEST_RATE)),
                    pitch=NORMAL_PITCH if given.pitch is None else given.pitch,
                    heard=heard,
                )
        except EspeakError as error:
            raise EngineError("The speech could not be made.") from error
        if not ended:
            raise Stopped
        output = track.close(speech=True)
        job.run.units.characters = len(given.input)
        return output


def load(place: Place) -> EspeakModel:
    """Start espeak-ng. Raises BadModel."""
    if place.source is not None:
        raise BadModel("espeak-ng has no source: leave it away")
    try:
        espeak = Espeak()
        voices = Voices(espeak.speakers(), espeak.variants())
        voices.resolve(place.options.voice, None)
    except (EspeakError, RefusedInput) as error:
        raise BadModel(str(error)) from None
    return EspeakModel(espeak, voices, place.options.voice)
