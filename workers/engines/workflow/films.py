"""Reading and writing videos and sounds by PyAV: what the local steps share."""

import threading
from collections.abc import Iterable, Iterator
from fractions import Fraction
from io import BytesIO
from typing import Any

import av
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from gateway.contract.events import MediaOutput
from workers.engine import RefusedInput

AAC_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)
PICTURE = {"crf": "18", "preset": "veryfast"}
"""libx264: without visible loss."""


class Stopped(Exception):
    """Nobody wants the result any more."""


def heed(items: Iterable[Any], stopping: threading.Event) -> Iterator[Any]:
    """Pass items on until told to stop. Raises Stopped."""
    for item in items:
        if stopping.is_set():
            raise Stopped
        yield item


def video_of(container: InputContainer) -> VideoStream:
    """Give the pictures of a file. Raises RefusedInput where it has none."""
    if not container.streams.video:
        raise RefusedInput("There are no pictures in the video.")
    return container.streams.video[0]


def sound_of(container: InputContainer) -> AudioStream:
    """Give the sound of a file. Raises RefusedInput where it has none."""
    if not container.streams.audio:
        raise RefusedInput("There is no sound in the audio.")
    return container.streams.audio[0]


def rate_of(stream: VideoStream) -> Fraction:
    """Give the frames a second of a video."""
    return Fraction(stream.average_rate or stream.guessed_rate or 25)


def add_pictures(out: OutputContainer, rate: Fraction, size: tuple[int, int]) -> VideoStream:
    """Add a stream of H.264 to a file; its sides are even, as H.264 wants them."""
    stream = out.add_stream("libx264", rate, options=PICTURE)
    stream.width, stream.height, stream.pix_fmt = size[0] & ~1, size[1] & ~1, "yuv420p"
    return stream


def add_sound(out: OutputContainer, rate: int, layout: str) -> AudioStream:
    """Add a stream of AAC to a file."""
    return out.add_stream("aac", rate, layout=layout)


def samples(container: InputContainer, stopping: threading.Event) -> list[AudioFrame]:
    """Decode a sound whole, as AAC wants it: planar floats, at most two channels, at a rate that it knows."""
    stream = sound_of(container)
    rate = min(AAC_RATES, key=lambda known: abs(known - stream.rate))
    resampler = AudioResampler("fltp", "mono" if stream.channels == 1 else "stereo", rate)
    frames: list[AudioFrame] = []
    for frame in heed(container.decode(stream), stopping):
        frame.pts = None
        frames += resampler.resample(frame)
    frames += resampler.resample(None)
    if not frames:
        raise RefusedInput("There is no sound in the audio.")
    return frames


def length_s(frames: Iterable[AudioFrame]) -> Fraction:
    """Give the length of a sound."""
    return sum((Fraction(frame.samples, frame.sample_rate) for frame in frames), Fraction(0))


def encode_sound(out: OutputContainer, stream: AudioStream, frames: Iterable[AudioFrame]) -> None:
    """Write a whole sound."""
    at = 0
    for frame in frames:
        frame.pts, frame.time_base = at, Fraction(1, frame.sample_rate)
        at += frame.samples
        out.mux(stream.encode(frame))
    out.mux(stream.encode(None))


def encode_pictures(out: OutputContainer, stream: VideoStream, frames: Iterable[VideoFrame], rate: Fraction) -> int:
    """Write pictures one after the other; answers how many."""
    at = 0
    for frame in frames:
        plain = frame.reformat(stream.width, stream.height, "yuv420p")
        plain.pts, plain.time_base = at, 1 / rate
        out.mux(stream.encode(plain))
        at += 1
    out.mux(stream.encode(None))
    return at


def movie(file: BytesIO, size: tuple[int, int], frames: int, duration: Fraction) -> MediaOutput:
    """Describe an MP4 that has been written."""
    data = file.getvalue()
    ms = round(duration * 1000)
    return MediaOutput("video/mp4", len(data), data, width=size[0], height=size[1], duration_ms=ms, frames=frames)


def opened(data: bytes) -> InputContainer:
    """Open a file in memory. Raises av.error.FFmpegError where it is none."""
    container: InputContainer = av.open(BytesIO(data))
    return container
