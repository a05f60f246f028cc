"""Drives the diffusers engine as a worker does, without a queue: media of its own, and runs whose frames are kept."""

import asyncio
import io
import struct
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np
import numpy.typing as npt
from PIL import Image

from gateway.contract.events import Frame, GalleryOutput, ImageDelta, MediaOutput, Output, Progress
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES, Media
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from gateway.contract.tasks import Task
from workers.engine import Run
from workers.engines.diffusers.engine import DiffusersEngine

PATIENCE_S = 120.0

SD = ServedModel(
    name="sd",
    tasks=["text-to-image", "image-edit", "image-blend", "image-relight", "image-restyle"],
    source="tiny:tiny-sd",
    options={"max_batch": 16},
)
PIX2PIX = ServedModel(name="pix2pix", tasks=["image-edit", "image-relight"], source="tiny:tiny-pix2pix")
UPSCALE = ServedModel(
    name="upscale", tasks=["image-upscale", "video-upscale"], source="tiny:tiny-upscale", options={"max_batch": 2}
)
WAN = ServedModel(name="wan", tasks=["text-to-video"], source="tiny:tiny-wan")
LTX = ServedModel(name="ltx", tasks=["text-to-video", "image-to-video"], source="tiny:tiny-ltx")


class Attempt:
    """One request on its way."""

    def __init__(self, engine: DiffusersEngine, run: Run, frames: list[Frame]) -> None:
        self.run = run
        self.frames = frames
        self.began_s = time.perf_counter()
        self.task: asyncio.Task[Output] = asyncio.ensure_future(engine.run(run))

    async def output(self) -> Output:
        """Wait for the output."""
        return await asyncio.wait_for(self.task, PATIENCE_S)

    async def picture(self) -> Image.Image:
        """Wait for an output that is one image, and open it."""
        output = await self.output()
        assert isinstance(output, MediaOutput)
        return opened(output)

    async def film(self) -> MediaOutput:
        """Wait for an output that is a video with its thumbnail; answers the video."""
        output = await self.output()
        assert isinstance(output, GalleryOutput)
        film, still = output.items
        assert (film.media_type, film.role, still.role) == ("video/mp4", "", "thumbnail")
        opened(still)
        return film

    @property
    def fractions(self) -> list[float]:
        """The progress that was sent."""
        return [frame.event.fraction for frame in self.frames if isinstance(frame.event, Progress)]

    @property
    def previews(self) -> list[ImageDelta]:
        """The previews that were sent."""
        return [frame.event for frame in self.frames if isinstance(frame.event, ImageDelta)]

    async def drawn(self, steps: int) -> None:
        """Wait until so many steps are counted."""
        await until(lambda: self.run.units.steps >= steps)


class Driver:
    """A loaded engine, and what it said of its models."""

    def __init__(self, engine: DiffusersEngine, states: dict[str, list[ModelState]], media: Path) -> None:
        self.engine = engine
        self.states = states
        self._media = media

    def ask(self, model: str, task: Task, *, stream: bool = False, keep: bool = False, **given: Any) -> Attempt:
        """Start a request."""
        request = Request(new_request_id(), 1, model, task, b"", 1, stream=stream, keep=keep)
        frames: list[Frame] = []
        value = msgspec.convert(given, INPUT_TYPES[task])
        run = Run(request, value, 1, lambda _, frame: frames.append(frame), self._read)
        return Attempt(self.engine, run, frames)

    async def _read(self, media: Media) -> bytes:
        return await asyncio.to_thread((self._media / media.blob).read_bytes)

    def media(self, name: str, data: bytes, **measured: Any) -> Media:
        """Put a file where runs read their inputs."""
        (self._media / name).write_bytes(data)
        return Media(blob=name, media_type="application/octet-stream", size_bytes=len(data), **measured)

    def picture(self, width: int = 64, height: int = 64, kind: str = "png", hue: int = 0) -> Media:
        """Make an image file of a gradient."""
        data = encoded(gradient(width, height, hue), kind)
        return self.media(f"{width}x{height}-{hue}.{kind}", data, width=width, height=height)

    def state(self, model: str) -> str:
        """Say how a model stands now."""
        return self.states[model][-1].state

    async def idle(self) -> None:
        """Wait until the engine takes work again as if it had none."""
        await until(lambda: not self.engine.busy)


async def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.002)


def gradient(width: int, height: int, hue: int = 0) -> Image.Image:
    """Draw a picture that is different everywhere."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [x * 255 // width, y * 255 // height, np.full_like(x, hue)]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


def encoded(picture: Image.Image, kind: str = "png") -> bytes:
    """Write a picture as a file."""
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """Make a PNG that says it is large, and has nothing in it."""
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    ]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def film_file(frames: int, size: tuple[int, int] = (32, 32), fps: int = 8, *, sound: bool = False) -> bytes:
    """Make a small mp4, with a tone where wanted."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=fps)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        heard = file.add_stream("aac", rate=48_000) if sound else None
        for at in range(frames):
            picture = gradient(*size, hue=at * 10 % 256)
            file.mux(stream.encode(av.VideoFrame.from_image(picture)))
        file.mux(stream.encode())
        if heard is not None:
            tone = np.sin(np.arange(48_000 * frames // fps) / 20)[np.newaxis].astype(np.float32)
            frame = av.AudioFrame.from_ndarray(tone, format="fltp", layout="mono")
            frame.sample_rate = 48_000
            file.mux(heard.encode(frame))
            file.mux(heard.encode())
    return buffer.getvalue()


def opened(output: MediaOutput) -> Image.Image:
    """Decode an image that came out, and hold it against what is said of it."""
    assert output.size_bytes == len(output.data) > 0
    with Image.open(io.BytesIO(output.data)) as picture:
        picture.load()
        assert Image.MIME[picture.format or ""] == output.media_type
        assert picture.size == (output.width, output.height)
        return picture.convert("RGB")


def frames_of(output: MediaOutput) -> list[npt.NDArray[np.uint8]]:
    """Decode a video that came out, and hold it against what is said of it."""
    with av.open(io.BytesIO(output.data)) as file:
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
        assert len(frames) == output.frames
        assert frames[0].shape == (output.height, output.width, 3)
        length_ms = float(file.duration or 0) / 1000
        assert abs(length_ms - output.duration_ms) < 150
    return frames


@asynccontextmanager
async def serving(models_dir: Path, media: Path, *models: ServedModel, memory_bytes: int = 0) -> AsyncIterator[Driver]:
    """Load models for the length of a block."""
    engine = DiffusersEngine(models_dir)
    engine.keep_within(memory_bytes)
    states: dict[str, list[ModelState]] = {model.name: [] for model in models}
    await engine.load(models, lambda name, state: states[name].append(state))
    try:
        yield Driver(engine, states, media)
    finally:
        await engine.unload()
