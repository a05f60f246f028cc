"""Drives the vLLM engine as a worker does: one run for each request, what it sends kept in a list."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from gateway.contract.events import Frame, RankingOutput, TextDelta, TextOutput, VectorOutput
from gateway.contract.ids import new_request_id
from gateway.contract.inputs import INPUT_TYPES
from gateway.contract.pools import ModelState, ServedModel
from gateway.contract.request import Request
from gateway.contract.tasks import Task
from workers.engine import Run
from workers.engines.vllm.engine import VllmEngine

HELLO = [{"role": "user", "content": "hello there"}]
PATIENCE_S = 60.0


class Attempt:
    """One request on its way."""

    def __init__(
        self,
        engine: VllmEngine,
        task: Task,
        *,
        given: dict[str, Any],
        stream: bool = False,
        model: str = "m",
        account: int = 1,
    ) -> None:
        self.frames: list[Frame] = []
        request = Request(new_request_id(), account, model, task, b"", 1, stream=stream)
        self.run = Run(
            request, msgspec.convert(given, INPUT_TYPES[task]), 1, lambda _, frame: self.frames.append(frame)
        )
        self.task = asyncio.ensure_future(engine.run(self.run))

    @property
    def deltas(self) -> list[TextDelta]:
        """The pieces of text sent so far."""
        return [frame.event for frame in self.frames if isinstance(frame.event, TextDelta)]

    async def text(self) -> TextOutput:
        """Wait for the answer of a chat or completion."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        assert isinstance(output, TextOutput)
        return output

    async def vectors(self) -> VectorOutput:
        """Wait for embeddings."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        assert isinstance(output, VectorOutput)
        return output

    async def ranking(self) -> RankingOutput:
        """Wait for a ranking."""
        output = await asyncio.wait_for(self.task, PATIENCE_S)
        assert isinstance(output, RankingOutput)
        return output

    async def produced(self, tokens: int) -> None:
        """Wait until so many tokens are counted."""
        async with asyncio.timeout(PATIENCE_S):
            while self.run.units.output_tokens < tokens:
                await asyncio.sleep(0.002)

    async def read(self, tokens: int) -> None:
        """Wait until so many tokens of the input are counted."""
        async with asyncio.timeout(PATIENCE_S):
            while self.run.units.input_tokens < tokens:
                await asyncio.sleep(0.002)


class Driver:
    """A loaded engine."""

    def __init__(self, engine: VllmEngine, states: dict[str, ModelState]) -> None:
        self.engine = engine
        self.states = states

    def chat(self, *, stream: bool = False, **given: Any) -> Attempt:
        """Start a chat."""
        return Attempt(self.engine, "chat", stream=stream, given={"messages": HELLO} | given)

    def complete(self, *, stream: bool = False, **given: Any) -> Attempt:
        """Start a completion."""
        return Attempt(self.engine, "completion", stream=stream, given=given)

    def embed(self, **given: Any) -> Attempt:
        """Start an embedding."""
        return Attempt(self.engine, "embedding", given=given)

    def rerank(self, **given: Any) -> Attempt:
        """Start a ranking."""
        return Attempt(self.engine, "rerank", given=given)

    def call(self, model: str, *, account: int = 1, **given: Any) -> Attempt:
        """Start a chat with one of the names that the engine serves; the likeliest tokens are drawn."""
        whole = {"messages": HELLO, "temperature": 0, "max_tokens": 20, "ignore_eos": True} | given
        return Attempt(self.engine, "chat", given=whole, stream=True, model=model, account=account)


@asynccontextmanager
async def serving(
    models_dir: Path, name: str, tasks: list[Task], *, beside: Sequence[ServedModel] = (), **options: Any
) -> AsyncIterator[Driver]:
    """Load a tiny model for the length of a block, and what is to be served beside it."""
    engine = VllmEngine(models_dir)
    states: dict[str, list[ModelState]] = {}
    model = ServedModel(name=name, tasks=tasks, source=f"tiny:{name}", options=options)
    await engine.load([model, *beside], lambda name, state: states.setdefault(name, []).append(state))
    assert [state.state for state in states[name]] == ["loading", "ready"], states
    try:
        yield Driver(engine, {name: told[-1] for name, told in states.items()})
    finally:
        await engine.unload()
