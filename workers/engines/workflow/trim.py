"""A part of a video or of a sound: what lies between two instants, encoded anew."""

import threading
from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO

import av
from av.audio.frame import AudioFrame

from gateway.contract.events import MediaOutput
from gateway.contract.workflow import TrimInput
from workers.engine import RefusedInput
from workers.engines.workflow.films import (
    add_pictures,
    add_sound,
    encode_pictures,
    encode_sound,
    heed,
    length_s,
    movie,
    opened,
    rate_of,
    samples,
    video_of,
)
from workers.engines.workflow.local import Files, source

WAV = "audio/wav"


def trim(given: TrimInput, files: Files, stopping: threading.Event) -> MediaOutput:
    """Cut a part out. Raises RefusedInput where there is nothing in it, or FFmpegError."""
    start = Fraction(given.start_s).limit_denominator(1_000_000)
    until = start + Fraction(given.seconds).limit_denominator(1_000_000)
    if given.video is not None:
        return _trim_video(source(given.video, files), start, until, stopping)
    return _trim_sound(source(given.audio, files), start, until, stopping)


def _trim_video(data: bytes, start: Fraction, until: Fraction, stopping: threading.Event) -> MediaOutput:
    heard: list[AudioFrame] = []
    with opened(data) as seen:
        if seen.streams.audio:
            heard = list(_between(samples(seen, stopping), start, until))
    file = BytesIO()
    with opened(data) as seen, av.open(file, "w", format="mp4") as out:
        pictures = video_of(seen)
        rate = rate_of(pictures)
        stream = add_pictures(out, rate, (pictures.width, pictures.height))
        track = add_sound(out, heard[0].sample_rate, heard[0].layout.name) if heard else None
        kept = (frame for frame in heed(seen.decode(pictures), stopping) if start <= Fraction(frame.time or 0) < until)
        shown = encode_pictures(out, stream, kept, rate)
        if not shown:
            raise RefusedInput("The video ends before the part that is to be kept.")
        if track is not None:
            encode_sound(out, track, heed(heard, stopping))
        size = (stream.width, stream.height)
    return movie(file, size, shown, shown / rate)


def _trim_sound(data: bytes, start: Fraction, until: Fraction, stopping: threading.Event) -> MediaOutput:
    with opened(data) as sound:
        heard = list(_between(samples(sound, stopping), start, until))
    if not heard:
        raise RefusedInput("The sound ends before the part that is to be kept.")
    file = BytesIO()
    with av.open(file, "w", format="wav") as out:
        track = out.add_stream("pcm_s16le", heard[0].sample_rate, layout=heard[0].layout.name)
        encode_sound(out, track, heed(heard, stopping))
    written = file.getvalue()
    return MediaOutput(WAV, len(written), written, duration_ms=round(length_s(heard) * 1000))


def _between(frames: list[AudioFrame], start: Fraction, until: Fraction) -> Iterator[AudioFrame]:
    """Yield the samples between two instants; frames that lie across one are cut."""
    at = 0
    for frame in frames:
        rate = frame.sample_rate
        first, last = max(0, round(start * rate) - at), min(frame.samples, round(until * rate) - at)
        at += frame.samples
        if first < last:
            part = AudioFrame.from_ndarray(
                frame.to_ndarray()[:, first:last].copy(), frame.format.name, frame.layout.name
            )
            part.sample_rate = rate
            yield part
