"""One speech request, in the thread that synthesises and encodes it."""

import time
from collections.abc import Callable

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import SpeechInput
from workers.engine import RefusedInput, Run
from workers.engines.speech.encoders import MEDIA_TYPES, Format, Stretcher, make_encoder, with_known_size
from workers.engines.speech.library import Espeak

NORMAL_RATE = 175
"""Words a minute at speed 1."""
SLOWEST_RATE = 80
"""The slowest that espeak-ng speaks; what is slower is stretched. Its fastest is 700, speed 4."""
NORMAL_PITCH = 50
SILENCE_MS = 100
"""Less sound than this means that there was nothing to say: espeak-ng gives 7 to 60 ms for mere punctuation."""
CHUNK_BYTES = 32 * 1024
"""The most that goes out in one piece."""


class Job:
    """Speaks one input. `stopped`, set from another thread, ends it within 60 ms of sound.

    The forward phase is the synthesis, the postprocess phase stretching and encoding.
    """

    def __init__(self, run: Run, given: SpeechInput, voice: str, send: Callable[[bytes], None] | None) -> None:
        self.stopped = False
        self._run = run
        self._given = given
        self._voice = voice
        self._send = send
        self._file: list[bytes] = []
        self._samples = 0

    def work(self, espeak: Espeak) -> MediaOutput:
        """Synthesise and encode the whole; blocks. Raises RefusedInput, EspeakError or av.FFmpegError."""
        given, run = self._given, self._run
        self._kind: Format = given.response_format or "mp3"
        self._rate = espeak.sample_rate
        self._encoder = make_encoder(self._kind, self._rate)
        words_a_minute = NORMAL_RATE * (given.speed or 1.0)
        slow = words_a_minute < SLOWEST_RATE
        self._stretcher = Stretcher(self._rate, words_a_minute / SLOWEST_RATE) if slow else None
        began = time.perf_counter_ns()
        ended = espeak.speak(
            given.input,
            voice=self._voice,
            rate=round(max(words_a_minute, SLOWEST_RATE)),
            pitch=NORMAL_PITCH if given.pitch is None else given.pitch,
            heard=self._heard,
        )
        run.phases.forward_us = (time.perf_counter_ns() - began) // 1000 - run.phases.postprocess_us
        if ended:
            self._finish()
            run.units.characters = len(given.input)
        return self._output()

    def _heard(self, samples: bytes, characters: int) -> bool:
        if self.stopped:
            return False
        began = time.perf_counter_ns()
        self._encode(samples if self._stretcher is None else self._stretcher.write(samples))
        self._run.units.characters = characters
        self._run.phases.postprocess_us += (time.perf_counter_ns() - began) // 1000
        return True

    def _encode(self, samples: bytes) -> None:
        if samples:
            self._samples += len(samples) // 2
            self._give(self._encoder.write(samples))
            self._run.units.audio_ms = round(self._samples * 1000 / self._rate)

    def _finish(self) -> None:
        began = time.perf_counter_ns()
        if self._stretcher is not None:
            self._encode(self._stretcher.close())
        if self._run.units.audio_ms < SILENCE_MS:
            raise RefusedInput("There is nothing to say in this input: give it words.")
        self._give(self._encoder.close())
        self._run.phases.postprocess_us += (time.perf_counter_ns() - began) // 1000

    def _give(self, data: bytes) -> None:
        if data:
            self._file.append(data)
        if self._send is not None:
            for start in range(0, len(data), CHUNK_BYTES):
                self._send(data[start : start + CHUNK_BYTES])

    def _output(self) -> MediaOutput:
        data = b"".join(self._file)
        if self._kind == "wav" and data:
            data = with_known_size(self._rate, data)
        return MediaOutput(MEDIA_TYPES[self._kind], len(data), data)
