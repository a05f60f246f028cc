"""From samples to a file: bounded, stretched, encoded, sent as it comes, and measured."""

import numpy as np

from gateway.contract.events import MediaOutput
from workers.engine import RefusedInput
from workers.engines.speech.encoders import MEDIA_TYPES, Format, Stretcher, make_encoder, with_known_size
from workers.engines.speech.job import Job, Samples

CHUNK_BYTES = 32 * 1024
"""The most that goes out in one piece."""
SILENCE_MS = 100
"""Less sound than this means that there was nothing to say: espeak-ng gives 7 to 60 ms for mere punctuation."""


class Track:
    """Takes samples (16 bits, mono) and makes a file of at most `most_ms`; what is beyond is cut off.

    The bound is the one that the quote was made by, so that no model, not even one of random weights, makes a
    sound that costs more than was held.
    """

    def __init__(
        self, job: Job, kind: Format, rate: int, most_ms: int, *, tempo: float = 1.0, music: bool = False
    ) -> None:
        self._job = job
        self._kind = kind
        self._rate = rate
        self._left = most_ms * rate // 1000
        self._encoder = make_encoder(kind, rate, music=music)
        self._stretcher = Stretcher(rate, tempo) if tempo != 1.0 else None
        self._file: list[bytes] = []
        self._samples = 0

    @property
    def full(self) -> bool:
        """Whether nothing more is taken."""
        return self._left == 0

    def write(self, samples: bytes) -> None:
        """Take the next samples, counted as the postprocess phase."""
        with self._job.phase("postprocess"):
            self._encode(samples if self._stretcher is None else self._stretcher.write(samples))

    def close(self, *, speech: bool, seed: int | None = None) -> MediaOutput:
        """Finish the file. Raises RefusedInput where a speech turned out to be silence."""
        with self._job.phase("postprocess"):
            if self._stretcher is not None:
                self._encode(self._stretcher.close())
            length_ms = self._job.run.units.audio_ms
            if speech and length_ms < SILENCE_MS:
                raise RefusedInput("There is nothing to say in this input: give it words.")
            self._give(self._encoder.close())
            data = b"".join(self._file)
            if self._kind == "wav" and data:
                data = with_known_size(self._rate, data)
        return MediaOutput(MEDIA_TYPES[self._kind], len(data), data, duration_ms=length_ms, seed=seed)

    def _encode(self, samples: bytes) -> None:
        samples = samples[: 2 * self._left]
        if samples:
            self._left -= len(samples) // 2
            self._samples += len(samples) // 2
            self._give(self._encoder.write(samples))
            self._job.run.units.audio_ms = round(self._samples * 1000 / self._rate)

    def _give(self, data: bytes) -> None:
        self._file.append(data)
        if self._job.heard:
            for start in range(0, len(data), CHUNK_BYTES):
                self._job.send(data[start : start + CHUNK_BYTES])


def pcm_of(samples: Samples) -> bytes:
    """Make 16 bits of samples between -1 and 1; what is louder is clipped, and what is no number is silence."""
    whole = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
    return (np.clip(whole, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()
