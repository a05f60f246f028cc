"""Pictures and a sound made into one video, as long as the sound.

The pictures are taken over as they are encoded where that can be; where they end before the sound, the last one stays.
Only pictures that go on for longer than the sound, or that are not H.264, are encoded anew.
"""

import threading
from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO
from itertools import islice

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from gateway.contract.events import MediaOutput
from gateway.contract.workflow import JoinInput
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


def join(given: JoinInput, files: Files, stopping: threading.Event) -> MediaOutput:
    """Join a video's pictures and a sound. Raises RefusedInput where one of them is not there, or FFmpegError."""
    with opened(source(given.audio, files)) as sound:
        heard = samples(sound, stopping)
    until = length_s(heard)
    file = BytesIO()
    with opened(source(given.video, files)) as seen, av.open(file, "w", format="mp4") as out:
        pictures = video_of(seen)
        packets = [packet for packet in heed(seen.demux(pictures), stopping) if packet.pts is not None]
        copied = _may_copy(pictures, packets, until)
        stream = (
            out.add_stream_from_template(pictures) if copied else add_pictures(out, rate_of(pictures), _size(pictures))
        )
        track = add_sound(out, heard[0].sample_rate, heard[0].layout.name)
        shown = _copy(out, stream, packets, until) if copied else _encode(out, stream, seen, until, stopping)
        size = _size(stream)
        encode_sound(out, track, heed(heard, stopping))
    return movie(file, size, shown, until)


def _size(stream: VideoStream) -> tuple[int, int]:
    return stream.width, stream.height


def _may_copy(pictures: VideoStream, packets: "list[Packet[VideoStream]]", until: Fraction) -> bool:
    """Say whether encoded pictures can be taken over: MP4 knows them, and none is to be cut off."""
    if pictures.codec_context.name != "h264" or not packets or pictures.time_base is None:
        return False
    end = max((packet.pts or 0) + (packet.duration or 0) for packet in packets) * pictures.time_base
    return end <= until + 1 / rate_of(pictures)


def _copy(out: OutputContainer, stream: VideoStream, packets: "list[Packet[VideoStream]]", until: Fraction) -> int:
    """Take packets over, the last one for as long as the sound goes on; answers how many."""
    first, last = packets[0], packets[-1]
    if last.time_base is not None and last.dts is not None:
        before = last.dts - (first.dts or 0)  # the first may be decoded before zero
        last.duration = max(last.duration or 0, round(until / last.time_base) - before)
    for packet in packets:
        packet.stream = stream
        out.mux(packet)
    return len(packets)


def _encode(
    out: OutputContainer, stream: VideoStream, seen: InputContainer, until: Fraction, stopping: threading.Event
) -> int:
    """Encode the pictures anew, up to the end of the sound; answers how many."""
    seen.seek(0)
    rate = rate_of(video_of(seen))
    frames = islice(_held(seen.decode(video=0)), max(1, round(until * rate)))
    return encode_pictures(out, stream, heed(frames, stopping), rate)


def _held(frames: Iterator[VideoFrame]) -> Iterator[VideoFrame]:
    """Yield pictures, and then the last one for ever."""
    last = None
    for last in frames:
        yield last
    while last is not None:
        yield last
