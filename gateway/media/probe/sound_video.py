"""Sound and video, by PyAV: what the container says is held against its limits, then every packet is counted.

Nothing is decoded but the first frame of a stream, to see that it can be. The one reader that the first bytes stand
for is named, so that a file cannot have ffmpeg open addresses or other files by posing as a playlist.
"""

from fractions import Fraction
from typing import Any, BinaryIO

from gateway.media.probe.refusal import Refused
from gateway.media.probe.signatures import Reader

OPTIONS = {"protocol_whitelist": "", "enable_drefs": "0"}
MOST_STREAMS = 16


def look_at_stream(file: BinaryIO, reader: Reader, wanted: str | None, limits: dict[str, int]) -> dict[str, Any]:
    """Give type, length, and for a video its size and frames. Raises Refused."""
    import av

    try:
        with av.open(file, format=reader.name, options=OPTIONS, metadata_errors="ignore") as container:
            if len(container.streams) > MOST_STREAMS:
                raise Refused("over_limit", f"has more than {MOST_STREAMS} streams")
            pictures = [each for each in container.streams.video if not _is_cover(each)]
            if pictures and wanted != "audio":
                return _video(container, pictures[0], reader, limits)
            if wanted == "video":
                raise Refused("wrong_kind", "has no moving pictures, where a video is wanted")
            if not container.streams.audio:
                raise Refused("wrong_kind", "has no sound, where sound is wanted")
            return _sound(container, container.streams.audio[0], reader, limits)
    except (av.FFmpegError, ValueError, OverflowError, EOFError):
        raise Refused("unreadable", f"is a damaged {reader.media_type} file") from None


def _is_cover(stream: Any) -> bool:
    """Say whether a stream is the picture on the cover of a song."""
    return bool(int(stream.disposition) & 0x400)  # AV_DISPOSITION_ATTACHED_PIC


def _video(container: Any, stream: Any, reader: Reader, limits: dict[str, int]) -> dict[str, Any]:
    width, height = stream.width, stream.height
    if width < 1 or height < 1:
        raise Refused("unreadable", "says no size of its pictures")
    if width * height > limits["video_pixels"]:
        raise Refused("over_limit", f"has {width}x{height} pixels; at most {limits['video_pixels']} are taken")
    if stream.frames > limits["video_frames"]:
        raise Refused("over_limit", f"has {stream.frames} frames; at most {limits['video_frames']} are taken")
    frames, seconds = _counted(container, stream, limits["video_s"], limits["video_frames"])
    return {
        "media_type": "video/webm" if reader.name == "matroska" else reader.media_type,
        "width": width,
        "height": height,
        "duration_ms": round(seconds * 1000),
        "frames": frames,
    }


def _sound(container: Any, stream: Any, reader: Reader, limits: dict[str, int]) -> dict[str, Any]:
    _, seconds = _counted(container, stream, limits["audio_s"], None)
    media_type = reader.media_type
    if media_type.startswith("video/"):
        media_type = "audio/webm" if reader.name == "matroska" else "audio/mp4"
    return {"media_type": media_type, "duration_ms": round(seconds * 1000)}


def _counted(container: Any, stream: Any, most_s: int, most_frames: int | None) -> tuple[int, Fraction]:
    """Count a stream's packets and the seconds they cover, and decode the first. Raises Refused over a limit."""
    stream.codec_context.thread_count = 1
    packets, decoded = 0, False
    base = stream.time_base or Fraction(1, 1000)
    first: int | None = None
    end = summed = 0
    for packet in container.demux(stream):
        if packet.size == 0:
            continue
        if not decoded:
            decoded = bool(packet.decode())
        packets += 1
        summed += packet.duration or 0
        if packet.pts is not None:
            first = packet.pts if first is None else min(first, packet.pts)
            end = max(end, packet.pts + (packet.duration or 0))
        seconds = max(end - (first or 0), summed) * base
        if seconds > most_s:
            raise Refused("over_limit", f"is longer than {most_s} s")
        if most_frames is not None and packets > most_frames:
            raise Refused("over_limit", f"has more than {most_frames} frames")
    if not decoded and not stream.codec_context.decode(None):
        raise Refused("unreadable", "holds nothing that can be decoded")
    return packets, max(end - (first or 0), summed) * base
