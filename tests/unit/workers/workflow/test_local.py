"""What a workflow's worker does itself: files are opened and measured."""

import threading
from io import BytesIO
from typing import Any

import pytest

from gateway.contract.events import MediaOutput
from gateway.contract.inputs import Media
from gateway.contract.workflow import FramesInput, JoinInput, TrimInput
from workers.engine import RefusedInput
from workers.engines.workflow.local import do_locally, need_media

av = pytest.importorskip("av")

RATE = 24_000


def sound(ms: int, form: str = "wav", codec: str = "pcm_s16le", rate: int = RATE) -> bytes:
    file = BytesIO()
    with av.open(file, "w", format=form) as out:
        stream = out.add_stream(codec, rate, layout="mono")
        frame = av.AudioFrame("s16", "mono", rate * ms // 1000)
        frame.planes[0].update(bytes(frame.planes[0].buffer_size))
        frame.sample_rate = rate
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()


def video(frames: int, fps: int = 10, codec: str = "libx264", form: str = "mp4", with_sound: bool = False) -> bytes:
    file = BytesIO()
    with av.open(file, "w", format=form) as out:
        stream = out.add_stream(codec, fps)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        track = out.add_stream("aac", RATE, layout="mono") if with_sound else None
        for at in range(frames):
            frame = av.VideoFrame(64, 48, "yuv420p")
            for plane in frame.planes:
                plane.update(bytes([at * 7 % 256]) * plane.buffer_size)
            frame.pts = at
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if track is not None:
            heard = av.AudioFrame("s16", "mono", RATE * frames // fps)
            heard.planes[0].update(bytes(heard.planes[0].buffer_size))
            heard.sample_rate = RATE
            out.mux(track.encode(heard))
            out.mux(track.encode(None))
    return file.getvalue()


def picture(level: int) -> bytes:
    from PIL import Image

    file = BytesIO()
    Image.new("RGB", (33, 47), (level, level, level)).save(file, "PNG")
    return file.getvalue()


def media(name: str, data: bytes) -> tuple[Media, dict[str, bytes]]:
    return Media(blob=name, media_type="application/octet-stream", size_bytes=len(data)), {name: data}


async def joined(seen: bytes, heard: bytes) -> MediaOutput:
    (pictures, first), (track, second) = media("v", seen), media("a", heard)
    return await do_locally(JoinInput(video=pictures, audio=track), first | second)


def measured(output: MediaOutput) -> dict[str, Any]:
    """Decode a file whole: its frames, and the length of each of its streams in seconds."""
    found: dict[str, Any] = {}
    with av.open(BytesIO(output.data)) as container:
        found["length"] = container.duration / 1e6
        for stream in container.streams:
            found[stream.type] = float(stream.duration * stream.time_base)
        found["frames"] = sum(1 for _ in container.decode(video=0)) if container.streams.video else 0
    return found


@pytest.mark.parametrize(
    ("frames", "ms", "shown"),
    [(10, 1000, 10), (11, 1000, 11), (10, 2500, 10), (40, 1500, 15), (1, 700, 1)],
    ids=["as long", "a frame longer", "held to the end", "cut", "one picture"],
)
@pytest.mark.parametrize("codec", ["libx264", "mpeg4"])
async def test_a_joined_video_is_as_long_as_its_sound(codec: str, frames: int, ms: int, shown: int) -> None:
    output = await joined(video(frames, codec=codec), sound(ms))
    found = measured(output)
    assert found["frames"] == output.frames
    assert output.frames == (shown if codec == "libx264" else ms // 100)
    assert (output.media_type, output.duration_ms, output.size_bytes) == ("video/mp4", ms, len(output.data))
    assert found["audio"] == pytest.approx(ms / 1000, abs=0.1)
    assert found["video"] == pytest.approx(ms / 1000, abs=0.11)


@pytest.mark.parametrize(
    ("form", "codec", "rate"),
    [("mp3", "libmp3lame", 44_100), ("flac", "flac", 22_050), ("ogg", "libopus", 48_000), ("wav", "pcm_s16le", 11_111)],
)
async def test_every_kind_of_sound_can_be_joined(form: str, codec: str, rate: int) -> None:
    output = await joined(video(10), sound(1000, form, codec, rate))
    assert measured(output)["audio"] == pytest.approx(1.0, abs=0.15)


async def test_pictures_that_are_taken_over_are_not_encoded_again() -> None:
    seen = video(10)
    with av.open(BytesIO(seen)) as before, av.open(BytesIO((await joined(seen, sound(1000))).data)) as after:
        old, new = ([bytes(packet) for packet in each.demux(video=0) if packet.size] for each in (before, after))
    assert old == new


async def test_a_part_of_a_video_keeps_its_sound() -> None:
    whole, files = media("v", video(20, with_sound=True))
    output = await do_locally(TrimInput(video=whole, start_s=0.5, seconds=1.0), files)
    found = measured(output)
    assert (output.frames, found["frames"], output.duration_ms) == (10, 10, 1000)
    assert found["audio"] == pytest.approx(1.0, abs=0.1)


async def test_a_part_of_a_sound_is_exact() -> None:
    whole, files = media("a", sound(2000))
    output = await do_locally(TrimInput(audio=whole, start_s=0.25, seconds=0.5), files)
    assert (output.media_type, output.duration_ms) == ("audio/wav", 500)
    assert measured(output)["length"] == pytest.approx(0.5, abs=0.001)


async def test_pictures_become_a_video_of_even_sides() -> None:
    pictures = [media(str(at), picture(at * 40)) for at in range(4)]
    files = {name: data for _, one in pictures for name, data in one.items()}
    output = await do_locally(FramesInput(images=[one for one, _ in pictures], fps=2), files)
    assert (output.width, output.height, output.frames, output.duration_ms) == (32, 46, 4, 2000)
    assert measured(output)["frames"] == 4


@pytest.mark.parametrize(
    ("seen", "heard", "why"),
    [
        (b"nothing", sound(100), "could not be worked on"),
        (video(2), b"nothing", "could not be worked on"),
        (sound(100), sound(100), "There are no pictures in the video."),
        (video(2), video(2), "There is no sound in the audio."),
    ],
)
async def test_what_cannot_be_joined_is_refused(seen: bytes, heard: bytes, why: str) -> None:
    with pytest.raises(RefusedInput, match=why):
        await joined(seen, heard)


@pytest.mark.parametrize("field", ["video", "audio"])
async def test_a_part_beyond_the_end_is_refused(field: str) -> None:
    whole, files = media("m", video(5) if field == "video" else sound(500))
    with pytest.raises(RefusedInput, match="ends before the part"):
        await do_locally(TrimInput(**{field: whole}, start_s=9.0, seconds=1.0), files)


def test_what_nobody_wants_any_more_is_given_up_within_a_frame() -> None:
    from workers.engines.workflow.films import Stopped

    (pictures, first), (track, second) = media("v", video(10)), media("a", sound(1000))
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(Stopped):
        need_media()[JoinInput](JoinInput(video=pictures, audio=track), first | second, stopping)
