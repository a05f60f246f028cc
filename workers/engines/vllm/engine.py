"""What a worker sees of vLLM: one model with its adapters, as many requests at once as it has room for."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gateway.contract.events import Output
from gateway.contract.inputs import ChatInput, CompletionInput, EmbeddingInput, RerankInput
from gateway.contract.pools import ModelState, ServedModel
from workers.engine import EngineLost, RefusedInput, Report, Run
from workers.engines.vllm.devices import Claim, claim_devices, lock_folder
from workers.engines.vllm.embedding import embed, texts_of
from workers.engines.vllm.environment import on_processor, prepare
from workers.engines.vllm.generation import generate
from workers.engines.vllm.loading import LOAD_ERRORS, load_apart
from workers.engines.vllm.options import BadModel, VllmOptions
from workers.engines.vllm.ranking import rank
from workers.engines.vllm.serving import Serving, serving_of
from workers.engines.vllm.shapes import Served
from workers.tiny.models import UnknownTinyModel, make_tiny

KV_FULL = 0.95
"""The share of the KV memory above which nothing more is taken: what runs still grows."""
MOST_SHARE = 4
"""A request of many texts occupies at most one of so many parts of the engine."""


class VllmEngine:
    """An engine that serves one model by vLLM, in process, with its adapters and further names."""

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir
        self.model: Served | None = None
        """The loaded model; None before and after."""
        self._options = VllmOptions()
        self._pools = False
        self._claim: Claim | None = None
        self._live = 0  # sequences handed to the engine and not yet back

    async def load(self, models: Sequence[ServedModel], report: Report) -> None:
        """Load the base model and its adapters; report each as `ready`, or as `failed` with the reason."""
        for model in models:
            report(model.name, ModelState(state="loading"))
        try:
            serving = serving_of(models, self._models_dir)
            self._claim = claim_devices(serving, lock_folder())
            self.model = await load_apart(partial(_start, self._models_dir, serving, self._claim))
        except LOAD_ERRORS as error:
            for model in models:
                report(model.name, ModelState(state="failed", detail=_in_short(error)))
            return
        self._options, self._pools = serving.options, serving.runner == "pooling"
        ready = ModelState(state="ready", context_tokens=self.model.context_tokens)
        for name in (serving.name, *serving.aliases):
            report(name, ready)
        for name, why in serving.refused.items():
            report(name, ModelState(state="failed", detail=f"BadModel: {why}"))
        for name, adapter in serving.adapters.items():
            try:
                await self.model.adopt(name, adapter)
            except LOAD_ERRORS as error:
                report(name, ModelState(state="failed", detail=_in_short(error)))
            else:
                report(name, ready)

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
        if not isinstance(given, ChatInput | CompletionInput | EmbeddingInput | RerankInput):
            raise RefusedInput("This model makes text, embeddings and rankings only.")
        if isinstance(given, EmbeddingInput | RerankInput) is not self._pools:
            raise RefusedInput(f"This model does not do the task {run.request.task}.")
        width = self._width(given)
        self._live += width
        try:
            if isinstance(given, EmbeddingInput):
                return await embed(model, run, given, width)
            if isinstance(given, RerankInput):
                return await rank(model, run, given, width)
            return await generate(model, run, given)
        finally:
            self._live -= width

    def _width(self, given: ChatInput | CompletionInput | EmbeddingInput | RerankInput) -> int:
        """Say how many sequences an input occupies at once."""
        if isinstance(given, ChatInput | CompletionInput):
            return given.n or 1
        count = len(texts_of(given)) if isinstance(given, EmbeddingInput) else len(given.documents)
        return min(count, max(1, self._options.max_num_seqs // MOST_SHARE))

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
        if self._claim is not None:
            self._claim.release()


def _start(models_dir: Path, serving: Serving, claim: Claim) -> Served:
    """Make what is missing, import vLLM, and load; blocks for 10 to 60 s."""
    tiny = [source.tiny for source in serving.sources if source.tiny]
    if tiny:
        try:
            make_tiny(models_dir, tiny)
        except UnknownTinyModel as error:
            raise BadModel(str(error)) from None
    prepare(serving, claim.devices)
    from workers.engines.vllm.adapter.model import Vllm

    if on_processor():
        return Vllm.start(serving)
    with claim.alone():
        return Vllm.start(serving)


def _in_short(error: Exception) -> str:
    """Say in a line why a model does not load; pydantic's errors name the field in their second line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])[:500]}" if lines else type(error).__name__
