"""Drives the Triton engine as a worker does: one run for each request, what it sends kept in a list."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer, models, pre_tokenizers

from gateway.contract.events import Frame, GalleryOutput, MediaOutput, Output, TextDelta, TextOutput, VectorOutput
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from gateway.contract.tasks import Task
from tests.engines.triton.server import TritonServer
from workers.engine import Run
from workers.engines.triton.engine import TritonEngine

HELLO = [{"role": "user", "content": "hello there"}]
PATIENCE_S = 60.0
TEMPLATE = "{% for message in messages %}[{{ message.role }}] {{ message.content }} {% endfor %}[assistant]"
TEXT: dict[str, Any] = {"model_name": "ensemble", "chat_template": TEMPLATE}
SLOW = TEXT | {"model_name": "slow"}


class Attempt:
    """One request on its way."""

    def __init__(self, engine: TritonEngine, model: str, task: Task, *, stream: bool, given: dict[str, Any]) -> None:
        self.frames: list[Frame] = []
        request = Request(new_request_id(), 1, model, task, b"", 1, stream=stream)
        self.id = request.id
        self.run = Run(
            request, msgspec.convert(given, INPUT_TYPES[task]), 1, lambda _, frame: self.frames.append(frame)
        )
        self.task: asyncio.Task[Output] = asyncio.ensure_future(engine.run(self.run))

    @property
    def deltas(self) -> list[TextDelta]:
        """The pieces of text sent so far."""
        return [frame.event for frame in self.frames if isinstance(frame.event, TextDelta)]

    async def text(self) -> TextOutput:
        """Wait for the answer of a chat or completion."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        assert isinstance(output, TextOutput)
        return output

    async def said(self) -> str:
        """Wait for the one answer, and give its text."""
        (choice,) = (await self.text()).choices
        return choice.text

    async def vectors(self) -> VectorOutput:
        """Wait for embeddings."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        assert isinstance(output, VectorOutput)
        return output

    async def images(self) -> list[MediaOutput]:
        """Wait for images."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        return output.items if isinstance(output, GalleryOutput) else [output]  # type: ignore[list-item]

    async def produced(self, tokens: int) -> None:
        """Wait until so many tokens are counted."""
        async with asyncio.timeout(PATIENCE_S):
            while self.run.units.output_tokens < tokens:
                await asyncio.sleep(0.002)


class Driver:
    """A loaded engine, and the last word on each of its models."""

    def __init__(self, engine: TritonEngine, states: dict[str, ModelState]) -> None:
        self.engine = engine
        self.states = states

    def chat(self, model: str = "m", *, stream: bool = False, **given: Any) -> Attempt:
        """Start a chat."""
        return Attempt(self.engine, model, "chat", stream=stream, given={"messages": HELLO} | given)

    def complete(self, prompt: str, model: str = "m", *, stream: bool = False, **given: Any) -> Attempt:
        """Start a completion."""
        return Attempt(self.engine, model, "completion", stream=stream, given={"prompt": prompt} | given)

    def embed(self, texts: str | list[str], model: str = "m", **given: Any) -> Attempt:
        """Start an embedding."""
        return Attempt(self.engine, model, "embedding", stream=False, given={"input": texts} | given)

    def paint(self, prompt: str, model: str = "m", **given: Any) -> Attempt:
        """Start an image."""
        given = {"size": "64x32", "steps": 2} | given
        return Attempt(self.engine, model, "text-to-image", stream=False, given={"prompt": prompt} | given)


def served(server: TritonServer, tasks: list[Task], name: str = "m", source: str = "", **options: Any) -> ServedModel:
    """Describe a model as a catalog does."""
    return ServedModel(name=name, tasks=tasks, source=source, options={"url": server.url} | options)


@asynccontextmanager
async def loaded(*models: ServedModel, models_dir: Path = Path()) -> AsyncIterator[Driver]:
    """Load models for the length of a block, whatever comes of it."""
    engine = TritonEngine(models_dir)
    states: dict[str, ModelState] = {}
    try:
        await asyncio.wait_for(engine.load(models, states.__setitem__), PATIENCE_S)
        yield Driver(engine, states)
    finally:
        await engine.unload()


@asynccontextmanager
async def serving(server: TritonServer, tasks: list[Task], source: str = "", **options: Any) -> AsyncIterator[Driver]:
    """Load one model, which must become ready."""
    async with loaded(served(server, tasks, source=source, **options)) as driver:
        assert driver.states["m"].state == "ready", driver.states["m"]
        yield driver


def write_tokenizer(folder: Path) -> Path:
    """Write a tokenizer whose tokens are words, with a chat template of its own."""
    words = ["[UNK]", "[PAD]", "hello", "there", "gate", "fare", "lane", "tram", "line"]
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    config = {"chat_template": "{{ bos_token }} " + TEMPLATE, "bos_token": {"content": "<s>"}, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
