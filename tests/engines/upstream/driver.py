"""Drives the engine of upstreams as a worker does, against a stand-in over real HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.blobs.choice import open_blobs
from gateway.blobs.store import BlobPlace
from gateway.contract.events import AudioDelta, Frame, GalleryOutput, MediaOutput, Output, Step, TextDelta, media_of
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES, Media
from gateway.contract.pools import ModelState, PoolSpec, ProtocolName, ServedModel, Target, UpstreamSpec
from gateway.contract.request import Request
from gateway.contract.tasks import Task
from gateway.contract.units import Units
from gateway.net.addresses import Allowed
from tests.upstreams.serving import HOST, StandIn
from workers.engine import Access, EngineError, RefusedInput, Run
from workers.engines.upstream.engine import UpstreamEngine

PATIENCE_S = 90.0
TIMEOUT_S = 60
NAME = "there"
POOL = "remote"
ONLY_STAND_INS = f"{HOST}/32"


class Attempt:
    """One request on its way; its media are read from `files`."""

    def __init__(self, engine: UpstreamEngine, model: str, task: Task, given: dict[str, Any], *, stream: bool = False,
                 keep: bool = False, request_id: str = "", number: int = 1, deadline_s: float = 0) -> None:  # fmt: skip
        self.frames: list[Frame] = []
        files: dict[str, bytes] = given.pop("files", {})
        value = INPUT_TYPES[task](**given)
        now_us = time.time_ns() // 1000
        deadline_ms = int(now_us / 1000 + deadline_s * 1000) if deadline_s else 0
        made = Request(request_id or new_request_id(), 1, model, task, b"", 1, stream=stream, keep=keep,
                       enqueued_us=now_us, deadline_ms=deadline_ms)  # fmt: skip

        async def read(media: Media) -> bytes:
            return files[media.blob]

        self.run = Run(made, value, number, lambda _, frame: self.frames.append(frame), read)
        self.task: asyncio.Task[Output] = asyncio.ensure_future(engine.run(self.run))

    async def output(self) -> Output:
        """Wait for the output."""
        return await asyncio.wait_for(self.task, PATIENCE_S)

    async def files(self) -> list[MediaOutput]:
        """Wait for the files of the output."""
        return list(media_of(await self.output()))

    async def picture(self) -> MediaOutput:
        """Wait for the one picture, or the video before its thumbnail."""
        output = await self.output()
        assert isinstance(output, GalleryOutput)
        return output.items[0]

    async def sound(self) -> MediaOutput:
        """Wait for a sound."""
        output = await self.output()
        assert isinstance(output, MediaOutput)
        return output

    async def error(self) -> EngineError | RefusedInput:
        """Wait for the failure."""
        try:
            output = await self.output()
        except (EngineError, RefusedInput) as error:
            return error
        raise AssertionError(f"no failure, but {output}")

    async def refusal(self) -> str:
        """Wait for the refusal of the input."""
        error = await self.error()
        assert isinstance(error, RefusedInput), repr(error)
        return str(error)

    async def reason(self) -> str:
        """Wait for the failure, and give its reason."""
        error = await self.error()
        assert isinstance(error, EngineError), repr(error)
        return error.reason

    async def stop(self, why: str = "cancelled_by_caller") -> None:
        """Stop it as a worker does."""
        self.run.stopped = why  # type: ignore[assignment]
        self.task.cancel()
        await asyncio.wait({self.task})

    @property
    def step(self) -> Step:
        """The last attempt that was recorded."""
        return self.run.steps[-1]

    @property
    def units(self) -> Units:
        """What was counted."""
        return self.run.units

    @property
    def heard(self) -> bytes:
        """The sound that was streamed."""
        return b"".join(frame.event.data for frame in self.frames if isinstance(frame.event, AudioDelta))

    @property
    def said(self) -> list[str]:
        """The pieces of text that were sent."""
        return [frame.event.text for frame in self.frames if isinstance(frame.event, TextDelta)]


class Driver:
    """A loaded engine."""

    def __init__(self, engine: UpstreamEngine) -> None:
        self.engine = engine

    def start(self, model: str, task: Task, **given: Any) -> Attempt:
        """Start a request that nobody watches."""
        return Attempt(self.engine, model, task, given)

    def streamed(self, model: str, task: Task, **given: Any) -> Attempt:
        """Start a request that is streamed."""
        return Attempt(self.engine, model, task, given, stream=True)

    def request(self, model: str, task: Task, given: dict[str, Any], **how: Any) -> Attempt:
        """Start a request of a given id, number, deadline."""
        return Attempt(self.engine, model, task, given, **how)


def model(name: str, *tasks: Task, wire: str = "", fields: dict[str, str] | None = None, **fixed: Any) -> ServedModel:
    """Describe a model that the stand-in serves."""
    target = Target(upstream=NAME, model=wire or name, fields=fields or {}, fixed=fixed)
    return ServedModel(name=name, tasks=list(tasks), targets=[target])


@asynccontextmanager
async def driving(
    protocol: ProtocolName,
    stand_in: StandIn,
    folder: Path,
    *models: ServedModel,
    path: str = "",
    timeout_s: int = TIMEOUT_S,
    allowed: str = ONLY_STAND_INS,
) -> AsyncIterator[Driver]:
    """Run an engine that knows one upstream, for the length of a block."""
    spec = UpstreamSpec(name=NAME, protocol=protocol, url=stand_in.url + path, timeout_s=timeout_s)
    pool = PoolSpec(pool=POOL, engine="upstream", models=list(models), upstreams=[spec])
    store = open_blobs(BlobPlace(url=str(folder)))
    engine = UpstreamEngine(folder)
    engine.connect(pool, {NAME.upper(): Access(key=stand_in.key)}, store, Allowed.parse(allowed), "worker-1")
    states: dict[str, ModelState] = {}
    await engine.load(models, states.__setitem__)
    assert {name: state.state for name, state in states.items()} == {each.name: "ready" for each in models}
    try:
        yield Driver(engine)
    finally:
        await engine.unload()


def upload(data: bytes, media_type: str, *, blob: str = "in", **facts: int) -> Media:
    """Make what `stage` would have made of a file."""
    return Media(blob=blob, media_type=media_type, size_bytes=len(data), **facts)
