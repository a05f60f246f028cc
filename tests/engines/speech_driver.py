"""Drives the speech engine as a worker does, with sounds of its own making as the callers' files."""

import asyncio
import io
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np
import numpy.typing as npt

from gateway.contract.events import AudioDelta, Frame, MediaOutput, Output, Progress
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES, Media
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.pricing.price import PriceVersion
from gateway.pricing.quote import ceiling
from workers.engine import Run
from workers.engines.speech.encoders import Format, make_encoder
from workers.engines.speech.engine import SpeechEngine

PATIENCE_S = 120.0
PHASES = ("queue", "load", "preprocess", "transfer", "forward", "postprocess")


class Sold(msgspec.Struct, frozen=True):
    """A model as a quote sees it."""

    name: str = "m"
    price: PriceVersion | None = PriceVersion(1, 1, (), datetime(2026, 1, 1, tzinfo=UTC))
    context_tokens: int = 0
    max_output_tokens: int = 0
    prompt_overhead_tokens: int = 0
    priced: tuple[str, ...] = ()


class Attempt:
    """One request on its way; its media are read from `files`."""

    def __init__(self, engine: SpeechEngine, model: str, task: Task, given: dict[str, Any], **request: bool) -> None:
        self.frames: list[Frame] = []
        files: dict[str, bytes] = given.pop("files", {})
        value = INPUT_TYPES[task](**given)
        made = Request(new_request_id(), 1, model, task, b"", 1, **request)

        async def read(media: Media) -> bytes:
            return files[media.blob]

        self.run = Run(made, value, 1, lambda _, frame: self.frames.append(frame), read)
        self.most: Units = ceiling(Sold(), value).units
        self.took_s = 0.0
        self.task = asyncio.ensure_future(self._timed(engine))

    async def _timed(self, engine: SpeechEngine) -> Output:
        began = time.perf_counter()
        answer = engine.run(self.run)
        try:
            return await answer
        finally:
            self.took_s = time.perf_counter() - began

    async def output(self) -> Output:
        """Wait for the output, and check what holds of every one: its phases, and its units against the quote."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        await asyncio.sleep(0)
        self.check()
        return output

    @property
    def accounted_s(self) -> float:
        """The time that the phases account for."""
        return sum(getattr(self.run.phases, f"{name}_us") for name in PHASES) / 1e6

    async def sound(self) -> MediaOutput:
        """Wait for a sound."""
        output = await self.output()
        assert isinstance(output, MediaOutput)
        assert output.size_bytes == len(output.data)
        assert output.duration_ms == self.run.units.audio_ms
        return output

    def check(self) -> None:
        """Check that phases are no more than the time it took, and that no unit exceeds what was quoted."""
        assert self.accounted_s <= 1.05 * self.took_s + 0.002, (self.run.phases, self.took_s)
        for unit in Units.__struct_fields__:
            assert getattr(self.run.units, unit) <= getattr(self.most, unit), unit

    @property
    def progress(self) -> list[float]:
        """How far it said to be."""
        return [frame.event.fraction for frame in self.frames if isinstance(frame.event, Progress)]

    @property
    def streamed(self) -> list[bytes]:
        """The pieces of the sound that were sent."""
        return [frame.event.data for frame in self.frames if isinstance(frame.event, AudioDelta)]


class Driver:
    """A loaded engine, which may be used on any event loop."""

    def __init__(self, models_dir: Path, *models: ServedModel) -> None:
        self.engine = SpeechEngine(models_dir)
        self.states: dict[str, ModelState] = {}
        asyncio.run(self.engine.load(models, self.states.__setitem__))

    def start(self, model: str, task: Task, *, stream: bool = False, keep: bool = False, **given: Any) -> Attempt:
        """Start a request."""
        return Attempt(self.engine, model, task, given, stream=stream, keep=keep)


def served(name: str, *tasks: Task, **options: Any) -> ServedModel:
    """Describe a tiny model."""
    return ServedModel(name=name, tasks=list(tasks), source=f"tiny:{name}", options=options)


def voice(seconds: float, pitch: float, rate: int = 16_000) -> npt.NDArray[np.float32]:
    """Make something like a voice: a tone, its overtones, and a breath of noise that comes and goes."""
    at = np.arange(int(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * pitch * n * at) / n for n in range(1, 6))
    noise = np.random.default_rng(int(pitch)).normal(size=len(at)) * 0.1
    return ((tone + noise) * (0.6 + 0.4 * np.sin(6 * at)) * 0.2).astype(np.float32)


def encoded(sound: npt.NDArray[np.float32], kind: Format = "wav", rate: int = 16_000) -> bytes:
    """Encode a sound as a file."""
    encoder = make_encoder(kind, rate)
    return encoder.write((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes()) + encoder.close()


def upload(data: bytes, seconds: float, media_type: str = "audio/wav") -> dict[str, Any]:
    """Make what `stage` would have made of a file; merge it into an input as `sample` or `file`."""
    return {
        "media": Media(blob="in", media_type=media_type, size_bytes=len(data), duration_ms=round(seconds * 1000)),
        "files": {"in": data},
    }


def decoded(output: MediaOutput) -> tuple[npt.NDArray[np.float32], int, str]:
    """Decode a file; gives its samples, its rate and its codec."""
    if output.media_type == "audio/pcm":
        return np.frombuffer(output.data, "<i2").astype(np.float32) / 32768, 24_000, "pcm"
    with av.open(io.BytesIO(output.data)) as container:
        stream = container.streams.audio[0]
        frames = [frame.to_ndarray() for frame in container.decode(stream)]
        samples = np.concatenate([frame.astype(np.float32).reshape(1, -1) for frame in frames], axis=1)[0]
        return samples, stream.rate, stream.codec_context.name
