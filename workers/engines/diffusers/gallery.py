"""The models of a worker: which there are, which of them are in memory, and how they come and go."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from gateway.contract.pools import LoadState, ModelState, ServedModel
from gateway.contract.tasks import Task
from workers.engine import EngineError, Report
from workers.engines.diffusers.drawing import Role
from workers.engines.diffusers.options import MIB, BadModel, Entry, declared_bytes, read_entry
from workers.engines.diffusers.shelf import Shelf
from workers.engines.diffusers.tasks import TASKS
from workers.engines.diffusers.thread import TorchThread
from workers.tiny.models import UnknownTinyModel, make_tiny

if TYPE_CHECKING:
    from workers.engines.diffusers.pipeline import Pipeline

log = structlog.get_logger()

LOAD_ERRORS = (ImportError, OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What the libraries raise for a model that they cannot load."""


class Gallery:
    """Loads models when they are needed and sends the least recently used away, within the budget of `shelf`."""

    def __init__(self, models_dir: Path, torch: TorchThread) -> None:
        self.shelf = Shelf()
        self._models_dir = models_dir
        self._torch = torch
        self._entries: dict[str, Entry] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._sizes: dict[str, int] = {}
        self._most_images: dict[str, int] = {}
        self._report: Report = lambda *_: None

    @property
    def names(self) -> list[str]:
        """The models that can be served, in memory or not."""
        return list(self._entries)

    def entry(self, name: str) -> Entry:
        """Give a model's source and options."""
        return self._entries[name]

    def offers(self, name: str, task: Task) -> bool:
        """Say whether a model is there, and for this task."""
        return name in self._entries and task in self._entries[name].model.tasks

    def most_images(self, name: str) -> int:
        """Give how many images of a model are drawn at once at most."""
        return self._most_images[name]

    def shrink(self, name: str, images: int) -> bool:
        """Draw fewer images at once, after so many were too many; False where one is too many."""
        self._most_images[name] = max(1, min(images, self._most_images[name]) // 2)
        log.warning("diffusers.memory_short", model=name, images=images, most_images=self._most_images[name])
        return images > 1

    async def open(self, models: Sequence[ServedModel], report: Report) -> None:
        """Check all models, and load them in their order while they fit the budget."""
        self._report = report
        for model in models:
            try:
                await self._admit(model)
            except LOAD_ERRORS as error:
                self._tell(model.name, "failed", in_short(error))
        _prepare(list(self._entries.values()))
        for name in self.names:
            if not self.shelf.fits(self._sizes[name]):
                self._tell(name, "on_demand")
                continue
            try:
                await self.bring(name)
            except EngineError:
                del self._entries[name]  # reported as failed; the next worker tries again

    async def _admit(self, model: ServedModel) -> None:
        """Check what a model is without loading it. Raises one of LOAD_ERRORS."""
        self._tell(model.name, "loading")
        entry = read_entry(model, self._models_dir)
        foreign = [task for task in model.tasks if task not in TASKS]
        if foreign:
            raise BadModel(f"diffusers does not do {', '.join(foreign)}")
        if entry.source.tiny:
            await self._torch.do(partial(_make_tiny, self._models_dir, entry.source.tiny))
        size = declared_bytes(entry)
        if not self.shelf.ever_fits(size):
            raise BadModel(self._too_large(size))
        self._entries[model.name], self._sizes[model.name] = entry, size
        self._most_images[model.name] = entry.options.max_batch

    def is_cheap(self, name: str) -> bool:
        """Say whether a model can run without another leaving memory."""
        return name in self.shelf or self.shelf.fits(self._sizes[name])

    def loaded(self, name: str) -> "Pipeline | None":
        """Give a model that is in memory, and note that it is used."""
        if name in self.shelf:
            self.shelf.touch(name)
        return self._pipelines.get(name)

    async def bring(self, name: str) -> "Pipeline":
        """Load a model, and let others leave for it. Raises EngineError where it cannot be loaded."""
        entry = self._entries[name]
        self._make_room(self._sizes[name], name)
        self._tell(name, "loading")
        try:
            pipeline = await self._torch.do(partial(_load, entry))
            size = self._sizes[name]
            if entry.options.memory_mb is None:
                size = self._sizes[name] = pipeline.size_bytes
            if not self.shelf.ever_fits(size):
                raise BadModel(self._too_large(size))
        except LOAD_ERRORS as error:
            self._tell(name, "failed", in_short(error))
            raise EngineError("The model could not be loaded.") from error
        self._make_room(size, name)
        self._pipelines[name] = pipeline
        self.shelf.put(name, size)
        self._tell(name, "ready")
        return pipeline

    def _make_room(self, size: int, name: str) -> None:
        for leaver in self.shelf.leavers(size):
            log.info("diffusers.model_left", model=leaver, in_favour_of=name)
            self.shelf.drop(leaver)
            del self._pipelines[leaver]
            self._tell(leaver, "on_demand")

    def _too_large(self, size: int) -> str:
        return f"it takes {size // MIB} MB, and the worker's memory budget is {self.shelf.budget_bytes // MIB} MB"

    def close(self) -> None:
        """Forget all models."""
        self._pipelines.clear()

    def _tell(self, name: str, state: LoadState, detail: str = "") -> None:
        self._report(name, ModelState(state=state, detail=detail))


def in_short(error: Exception) -> str:
    """Say in a line why a model does not load."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])[:500]}" if lines else type(error).__name__


def _prepare(entries: Sequence[Entry]) -> None:
    """Set what the Hugging Face libraries are to find when they are imported."""
    settings = {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if all(entry.source.local for entry in entries):
        settings |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    os.environ.update(settings)


def _make_tiny(models_dir: Path, name: str) -> None:
    try:
        make_tiny(models_dir, [name])
    except UnknownTinyModel as error:
        raise BadModel(str(error)) from None


def _load(entry: Entry) -> "Pipeline":
    from workers.engines.diffusers.loading import free
    from workers.engines.diffusers.pipeline import Pipeline

    free()  # what has left for this model
    roles: list[Role] = list(dict.fromkeys(TASKS[task].role for task in entry.model.tasks))
    return Pipeline(entry, roles)
