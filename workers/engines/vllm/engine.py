"""What a worker sees of vLLM: one model, as many requests at once as it has room for."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gateway.contract.events import Output
from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput
from gateway.contract.pools import ModelState, ServedModel
from workers.engine import EngineLost, RefusedInput, Report, Run
from workers.engines.vllm.embedding import embed
from workers.engines.vllm.environment import prepare
from workers.engines.vllm.generation import generate
from workers.engines.vllm.loading import LOAD_ERRORS, load_apart
from workers.engines.vllm.options import BadModel, Source, VllmOptions, options_of, source_of
from workers.engines.vllm.shapes import Served
from workers.tiny.models import UnknownTinyModel, make_tiny

KV_FULL = 0.95
"""The share of the KV memory above which nothing more is taken: what runs still grows."""


class VllmEngine:
    """An engine that serves one model by vLLM, in process. Further models of a pool are reported as failed."""

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir
        self.model: Served | None = None
        """The loaded model; None before and after."""
        self._options = VllmOptions()
        self._live = 0  # sequences handed to the engine and not yet back

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Load the first model and report it as `ready` with its context, or as `failed` with the reason."""
        for extra in models[1:]:
            detail = f"a worker serves one model by vLLM, here {models[0].name}: give {extra.name} a pool of its own"
            report(extra.name, ModelState(state="failed", detail=detail))
        for model in models[:1]:
            report(model.name, ModelState(state="loading"))
            try:
                source = source_of(model, self._models_dir)
                options = options_of(model, source)
                served = await load_apart(partial(_start, self._models_dir, model.name, source, options))
            except LOAD_ERRORS as error:
                report(model.name, ModelState(state="failed", detail=_in_short(error)))
                return
            self.model, self._options = served, options
            report(model.name, ModelState(state="ready", context_tokens=served.context_tokens))

    def capacity(self) -> int:
        """Say how many more sequences fit: by number, and by KV memory if they are like those that run."""
        model = self.model
        if model is None or model.dead:
            return 0
        free = self._options.max_num_seqs - self._live
        load = model.load
        if not self._live or not load.kv_share:
            return max(0, free)
        if load.waiting:
            return 0
        each = load.kv_share / max(1, load.running)
        return max(0, min(free, int((KV_FULL - load.kv_share) / each)))

    async def run(self, run: Run) -> Output:
        """Execute one request. Raises RefusedInput, EngineError or EngineLost."""
        model, given = self.model, run.input
        if model is None:
            raise EngineLost("No model is loaded.")
        if not isinstance(given, ChatInput | CompletionInput | EmbeddingInput):
            raise RefusedInput("This model makes text and embeddings only.")
        if isinstance(given, EmbeddingInput) is (self._options.runner != "pooling"):
            raise RefusedInput(f"This model does not do the task {run.request.task}.")
        width = self._width(given)
        self._live += width
        try:
            if isinstance(given, EmbeddingInput):
                return await embed(model, run, given, width)
            return await generate(model, run, given)
        finally:
            self._live -= width

    def _width(self, given: ChatInput | CompletionInput | EmbeddingInput) -> int:
        """Say how many sequences an input occupies at once."""
        if not isinstance(given, EmbeddingInput):
            return given.n or 1
        return 1 if isinstance(given.input, str) else min(len(given.input), max(1, self._options.max_num_seqs // 4))

    def failure(self) -> Exception | None:
        """Say that the engine has died."""
        if self.model is not None and self.model.dead:
            return EngineLost("vLLM's engine has died")
        return None

    async def unload(self) -> None:
        """Stop the engine and its processes."""
        if self.model is not None:
            model, self.model = self.model, None
            await asyncio.to_thread(model.stop)
            await asyncio.sleep(0)
            model.forget()


def _start(models_dir: Path, name: str, source: Source, options: VllmOptions) -> Served:
    """Make what is missing, import vLLM, and load; blocks for 10 to 60 s."""
    if source.tiny:
        try:
            make_tiny(models_dir, [source.tiny])
        except UnknownTinyModel as error:
            raise BadModel(str(error)) from None
    prepare(source, options)
    from workers.engines.vllm.adapter import Vllm

    return Vllm.start(name, source, options)


def _in_short(error: Exception) -> str:
    """Say in a line why a model does not load; pydantic's errors name the field in their second line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])[:500]}" if lines else type(error).__name__
