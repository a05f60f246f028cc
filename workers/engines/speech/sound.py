"""From a sound file of a caller to samples: decoded under limits, one channel, 16 kHz.

FFmpeg may open only the containers that are named here: others, such as playlists, name further files to be opened.
"""

import io
from collections.abc import Callable, Iterator

import av
import numpy as np
from av.audio.resampler import AudioResampler

from workers.engine import RefusedInput
from workers.engines.speech.encoders import PCM_RATE, frame_of
from workers.engines.speech.family import SoundLimits
from workers.engines.speech.job import Samples

RATE = 16_000
"""What Whisper and the models of speakers hear."""
CONTAINERS = "wav,mp3,flac,ogg,matroska,webm,mov,mp4,m4a,aac"
"""FFmpeg's names of what is taken: wav, mp3, flac, ogg (opus), webm, m4a and mp4, aac."""
SILENT = 1e-3
"""Below this peak, 60 dB under the loudest, nothing can be heard."""
PIECE_BYTES = 2 * PCM_RATE


def decode(data: bytes, media_type: str, *, field: str, limits: SoundLimits, check: Callable[[], None]) -> Samples:
    """Decode a file; blocks, and calls `check` for each piece. Raises RefusedInput, which names the field."""
    resampler = AudioResampler("flt", "mono", RATE)
    parts: list[Samples] = []
    count, most = 0, int(limits.most_s * RATE)
    try:
        for frame in _frames(data, media_type, field):
            check()
            for heard in resampler.resample(frame):
                parts.append(heard.to_ndarray()[0])
                count += heard.samples
            if count > most:
                raise RefusedInput(f"{field}: the sound is too long: at most {limits.most_s:g} seconds are taken.")
        parts.extend(heard.to_ndarray()[0] for heard in resampler.resample(None))
    except (av.FFmpegError, ValueError) as error:
        raise RefusedInput(_unreadable(field)) from error
    sound = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    if len(sound) < limits.least_s * RATE:
        raise RefusedInput(f"{field}: the sound is too short: at least {limits.least_s:g} seconds are needed.")
    if not limits.silence and is_silent(sound):
        raise RefusedInput(f"{field}: nothing can be heard in it: send a sound with a voice.")
    return sound


def is_silent(sound: Samples) -> bool:
    """Say whether nothing can be heard."""
    return not len(sound) or float(np.abs(sound).max()) < SILENT


def _frames(data: bytes, media_type: str, field: str) -> Iterator[av.AudioFrame]:
    if media_type == "audio/pcm":
        for start in range(0, len(data) - 1, PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            yield frame_of(piece[: len(piece) // 2 * 2], PCM_RATE, start // 2)
        return
    options = {"format_whitelist": CONTAINERS, "protocol_whitelist": ""}
    with av.open(io.BytesIO(data), options=options, metadata_errors="ignore") as container:
        if not container.streams.audio:
            raise RefusedInput(_unreadable(field))
        yield from container.decode(container.streams.audio[0])


def _unreadable(field: str) -> str:
    return f"{field}: this is no sound that can be read: send wav, mp3, flac, ogg or opus, aac, m4a, webm or pcm."
