"""Files made to burst: refused before they are decoded, by a process that may burst in the gateway's place."""

import io
import os
import signal
import struct
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO

import psutil
import pytest
from PIL import Image

from gateway.errors import FaregateError, Unprocessable
from gateway.media.limits import Kind, MediaLimits
from gateway.media.probe.pool import Probes
from tests.media.samples import film, picture, sound

LIMITS = MediaLimits(image_pixels=1_000_000, video_frames=1000, video_s=30, video_pixels=100_000, audio_s=30)


@pytest.fixture
async def probes() -> AsyncIterator[Probes]:
    """Answer fresh probes, one process at a time."""
    made = Probes(1)
    yield made
    await made.close()


def a_file(data: bytes) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 the test's end closes it
    file.write(data)
    file.flush()
    return file


async def told(probes: Probes, data: bytes, kind: Kind | None) -> tuple[int, str]:
    with a_file(data) as file:
        try:
            await probes.look(file, kind, LIMITS, "image")
        except FaregateError as error:
            return error.status, error.code
    return 200, ""


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bomb(width: int, height: int) -> bytes:
    """Write a picture of a few kilobytes that unpacks to gigabytes of nothing."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def png_text_bomb() -> bytes:
    """Write a small picture whose comment unpacks to 200 MB."""
    packer = zlib.compressobj(9)
    words = b"".join(packer.compress(bytes(1_000_000)) for _ in range(200)) + packer.flush()
    whole = picture()
    return whole[:33] + chunk(b"zTXt", b"Comment\0\0" + words) + whole[33:]


def gif_of(frames: int) -> bytes:
    file = io.BytesIO()
    first, *more = [Image.new("L", (2, 2), number % 256) for number in range(frames)]
    first.save(file, "GIF", save_all=True, append_images=more)
    return file.getvalue()


BOMBS: list[tuple[Callable[[], bytes], Kind]] = [
    (lambda: png_bomb(50_000, 50_000), "image"),
    (lambda: png_bomb(2**31 - 1, 2**31 - 1), "image"),
    (lambda: picture(1001, 1000), "image"),
    (lambda: b"PK\x03\x04" + zlib.compress(bytes(10_000_000), 9), "image"),
    (lambda: b"\x1f\x8b\x08\0" + zlib.compress(bytes(10_000_000), 9), "image"),
    (lambda: picture(64, 48, "JPEG2000"), "image"),
    (lambda: b"\xff\x4f\xff\x51" + b"\xff" * 100, "image"),
    (lambda: picture(64, 48, "TIFF"), "image"),
    (lambda: gif_of(1100), "image"),
    (lambda: b"%PDF-1.7\n", "image"),
    (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>", "image"),
    (lambda: film(10_000, side=32), "video"),
    (lambda: film(side=512), "video"),
    (lambda: b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/x\n", "video"),
    (lambda: b"ffconcat version 1.0\nfile /etc/passwd\n", "video"),
    (lambda: sound(seconds=31, rate=8000), "audio"),
]


async def test_bombs_are_refused_in_no_time(probes: Probes) -> None:
    assert await told(probes, picture(), "image") == (200, ""), "the process is there"
    for data, kind in [(made(), kind) for made, kind in BOMBS]:
        began = time.process_time()
        status, code = await told(probes, data, kind)
        assert status == 422, data[:40]
        assert code in ("media_over_limit", "media_not_supported")
        assert time.process_time() - began < 1, "of the gateway's own time"
        assert await told(probes, picture(), "image") == (200, "")


LIES: list[tuple[Callable[[], bytes], Kind]] = [
    (lambda: png_text_bomb(), "image"),
    (lambda: picture(640, 480)[:-300], "image"),
    (lambda: film()[: len(film()) // 2], "video"),
    (
        lambda: b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0data\xff\xff\xff\xff",
        "audio",
    ),
    (lambda: b"OggS" + os.urandom(5000), "audio"),
    (lambda: b"\x1a\x45\xdf\xa3" + os.urandom(5000), "video"),
    (lambda: b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + os.urandom(5000), "audio"),
    (lambda: b"\xff\xd8\xff" + os.urandom(5000), "image"),
    (lambda: b"RIFF\x10\0\0\0WEBPVP8X" + os.urandom(50), "image"),
]


async def test_files_that_lie_are_refused_and_the_next_one_is_looked_at(probes: Probes) -> None:
    for data, kind in [(made(), kind) for made, kind in LIES]:
        status, _ = await told(probes, data, kind)
        assert status in (400, 422), data[:40]
        assert await told(probes, picture(), "image") == (200, "")


async def test_a_probe_that_dies_or_hangs_costs_its_own_file_only(
    probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await told(probes, picture(), "image") == (200, "")
    os.kill(probes.pids[0], signal.SIGKILL)
    assert (await told(probes, picture(), "image"))[0] in (200, 422)
    assert await told(probes, picture(), "image") == (200, "")
    os.kill(probes.pids[0], signal.SIGSTOP)
    monkeypatch.setattr("gateway.media.probe.pool.ANSWER_S", 0.5)
    with a_file(picture()) as file, pytest.raises(Unprocessable):
        await probes.look(file, "image", LIMITS, "image")
    assert probes.pids == []
    monkeypatch.undo()
    assert await told(probes, picture(), "image") == (200, "")


async def test_a_probe_knows_and_reaches_nothing(probes: Probes) -> None:
    """Its environment is empty, it holds no file of the gateway, and its limits stand."""
    await told(probes, picture(), "image")
    process = psutil.Process(probes.pids[0])
    assert not any(name.startswith("FAREGATE") for name in process.environ())
    assert process.rlimit(psutil.RLIMIT_AS)[1] <= 2 * 1024**3
    assert process.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert process.rlimit(psutil.RLIMIT_CPU)[0] < 60
    assert process.open_files() == []


async def test_a_process_is_followed_by_a_fresh_one_after_a_while(
    probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    with a_file(b"hello") as file:
        for _ in range(120):
            with pytest.raises(FaregateError):
                await probes.look(file, "image", LIMITS, "image")
            seen.update(probes.pids)
    assert len(seen) == 2
