"""Video files, by PyAV in memory: H.264 in mp4, with the sound of the file that it was made from."""

import io
from collections.abc import Iterable
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import av
import msgspec
import numpy as np
import numpy.typing as npt
from PIL import Image

from workers.engine import RefusedInput

MEDIA_TYPE = "video/mp4"
MOST_FRAMES = 3_000
MOST_BYTES = 4 * 1024**3
"""Of the decoded frames of a caller's video."""
CODEC = "libx264"
COPIED = frozenset({"aac", "mp3", "opus", "flac", "alac", "ac3"})
"""The sound that goes into an mp4 as it is."""
CODEC_OPTIONS = {"preset": "veryfast", "crf": "18", "movflags": "+faststart"}


class Film(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded video. `source` is its file, from which the sound is taken."""

    frames: list[Image.Image]
    rate: Fraction
    source: bytes

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.frames[0].size


def read_film(data: bytes, field: str) -> Film:
    """Decode all frames of a video file. Raises RefusedInput that names the field."""
    try:
        with av.open(io.BytesIO(data)) as file:
            if not file.streams.video:
                raise RefusedInput(f"{field} has no pictures in it.")
            stream = file.streams.video[0]
            frames: list[Image.Image] = []
            for frame in file.decode(stream):
                frames.append(frame.to_image())
                if len(frames) > MOST_FRAMES or len(frames) * frame.width * frame.height * 3 > MOST_BYTES:
                    raise RefusedInput(f"{field} is too long: at most {MOST_FRAMES} frames are worked on.")
            rate = Fraction(stream.average_rate or stream.guessed_rate or 25)
    except (av.FFmpegError, ValueError):
        raise RefusedInput(f"{field} is not a video that can be read. Send an mp4 or WebM file.") from None
    if not frames:
        raise RefusedInput(f"{field} has no pictures in it.")
    return Film(frames=frames, rate=rate, source=data)


def write_film(frames: Iterable[npt.NDArray[np.uint8]], size: tuple[int, int], rate: Fraction, sound: bytes) -> bytes:
    """Encode frames of even size; with the sound of the file `sound`, where it has one that an mp4 can hold."""
    buffer = io.BytesIO()
    with ExitStack() as open_files:
        file = open_files.enter_context(av.open(buffer, "w", format="mp4"))
        stream = file.add_stream(CODEC, rate=rate, options=CODEC_OPTIONS)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        track = _track(open_files.enter_context(av.open(io.BytesIO(sound)))) if sound else None
        copied = None if track is None else file.add_stream_from_template(track)
        for frame in frames:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        file.mux(stream.encode())
        for packet in () if track is None else track.container.demux(track):
            if packet.dts is not None:
                packet.stream = copied
                file.mux(packet)
    return buffer.getvalue()


def _track(file: Any) -> Any:
    tracks = (track for track in file.streams.audio if track.codec_context.name in COPIED)
    return next(tracks, None)
