"""Drives the engine with several upstreams, as a worker does, against stand-ins on loopback."""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.blobs.local import LocalBlobs
from gateway.contract.events import AudioDelta, Frame, Output, Progress, TextDelta
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES, Media
from gateway.contract.pools import ModelState, PoolSpec, ServedModel, Target, UpstreamSpec
from gateway.contract.request import Leg, Request
from gateway.contract.tasks import Task
from gateway.net.addresses import Allowed
from tests.media.samples import picture, sound
from workers.engine import Access, Run
from workers.engines.upstream.engine import UpstreamEngine

PATIENCE_S = 90.0
FILES = {"picture": (picture(64, 48), "image/png", 0), "sound": (sound("wav", "pcm_s16le", 2), "audio/wav", 2000)}


def media(name: str) -> Media:
    """Give a file of the caller, as `stage` would have made it."""
    data, kind, length_ms = FILES[name]
    return Media(blob=name, media_type=kind, size_bytes=len(data), duration_ms=length_ms)


def target(upstream: str, model: str = "m", **more: Any) -> Target:
    """Give a target."""
    return Target(upstream=upstream, model=model, **more)


def model(name: str, *targets: Target, tasks: tuple[Task, ...] = ("chat",)) -> ServedModel:
    """Give a model with its targets."""
    return ServedModel(name=name, tasks=list(tasks), targets=list(targets))


class Attempt:
    """One request on its way."""

    def __init__(self, engine: UpstreamEngine, request: Request, given: Any, attempt: int) -> None:
        self.frames: list[Frame] = []

        async def read(source: Media) -> bytes:
            return FILES[source.blob][0]

        self.run = Run(request, given, attempt, lambda _, frame: self.frames.append(frame), read)
        self.task: asyncio.Task[Output] = asyncio.ensure_future(engine.run(self.run))

    async def output(self) -> Any:
        """Wait for the output."""
        return await asyncio.wait_for(asyncio.shield(self.task), PATIENCE_S)

    async def error(self) -> Any:
        """Wait for the error."""
        try:
            await asyncio.wait_for(asyncio.shield(self.task), PATIENCE_S)
        except Exception as error:
            return error
        raise AssertionError("it has not failed")

    async def stop(self, why: Any) -> None:
        """Stop it, as a worker does."""
        self.run.stopped = why
        self.task.cancel()
        await asyncio.wait({self.task})

    @property
    def texts(self) -> list[str]:
        """The texts that were sent."""
        return [frame.event.text for frame in self.frames if isinstance(frame.event, TextDelta)]

    @property
    def sounds(self) -> bytes:
        """The sound that was sent."""
        return b"".join(frame.event.data for frame in self.frames if isinstance(frame.event, AudioDelta))

    @property
    def progress(self) -> list[float]:
        """How far it said to be."""
        return [frame.event.fraction for frame in self.frames if isinstance(frame.event, Progress)]


class Driver:
    """A loaded engine with its blob store. Make it on the event loop that uses it, and `close` it there."""

    def __init__(self, folder: Path, allow: str = "") -> None:
        self.engine = UpstreamEngine(folder / "models")
        self.blobs = LocalBlobs(folder / "blobs")
        self.states: dict[str, ModelState] = {}
        self._allowed = Allowed.parse(allow)

    async def load(
        self, upstreams: Mapping[str, str | UpstreamSpec], *models: ServedModel, keys: Mapping[str, str] | None = None
    ) -> None:
        """Load models; upstreams by name are addresses of stand-ins that speak `openai`, or specifications."""
        specs = [
            UpstreamSpec(name=name, protocol="openai", url=each, timeout_s=60) if isinstance(each, str) else each
            for name, each in upstreams.items()
        ]
        known = {spec.name: "secret-key-of-the-operator" for spec in specs} if keys is None else keys
        access = {name.upper(): Access(key=key) for name, key in known.items()}
        spec = PoolSpec(pool="away", engine="upstream", models=list(models), upstreams=specs)
        self.engine.connect(spec, access, self.blobs, self._allowed, "worker-1")
        await self.engine.load(spec.models, self.states.__setitem__)

    def start(
        self,
        name: str,
        task: Task = "chat",
        *,
        stream: bool = False,
        keep: bool = False,
        attempt: int = 1,
        request_id: str = "",
        only: tuple[str, ...] = (),
        legs: tuple[Leg, ...] = (),
        **given: Any,
    ) -> Attempt:
        """Start a request."""
        if task == "chat":
            given = {"messages": [{"role": "user", "content": "say it"}]} | given
        value = msgspec.convert(given, INPUT_TYPES[task])
        made = Request(
            request_id or new_request_id(),
            1,
            name,
            task,
            b"",
            1,
            stream=stream,
            keep=keep,
            only=list(only),
            legs=list(legs),
        )
        return Attempt(self.engine, made, value, attempt)

    async def close(self) -> None:
        """End the engine."""
        await self.engine.unload()


async def holds(condition: Callable[[], Any], within_s: float = 60.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it does not come"
        await asyncio.sleep(0.02)
