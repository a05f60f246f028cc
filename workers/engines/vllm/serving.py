"""What one process serves: a base model, further names for it, and its LoRA adapters."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from gateway.contract.pools import ServedModel
from gateway.contract.tasks import Task
from workers.engines.vllm.options import (
    BadModel,
    SharedOptions,
    Source,
    VllmOptions,
    file_text,
    options_of,
    source_of,
)

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM sets memory aside for."""
_POOLED: frozenset[Task] = frozenset({"embedding", "rerank"})


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """A LoRA adapter: its folder, and its rank rounded up to what vLLM knows."""

    where: str
    rank: int


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """One process of vLLM."""

    name: str
    """The base model's."""
    source: Source
    options: VllmOptions
    runner: Literal["generate", "pooling"]
    convert: Literal["auto", "none", "embed", "classify"]
    reranks: bool = False
    adapters: dict[str, Adapter] = {}
    """By the name under which each is called."""
    aliases: list[str] = []
    """Further names of the base model."""
    refused: dict[str, str] = {}
    """Why a name of the pool is not served."""
    draft: str = ""
    """Where the smaller model of speculative decoding lies."""
    sources: list[Source] = []
    """All that has to be there: the base model's, and the smaller model's."""
    template: str | None = None

    @property
    def served(self) -> list[str]:
        """Name everything that is served."""
        return [self.name, *self.aliases, *self.adapters]


def serving_of(models: Sequence[ServedModel], models_dir: Path) -> Serving:
    """Read the models of a pool: the first without an adapter is the base. Raises BadModel where that is not right."""
    base = next((model for model in models if "adapter" not in model.options), None)
    if base is None:
        raise BadModel("adapters need their base model in the same pool: an entry without `adapter`")
    source = source_of(base, models_dir)
    options = options_of(base, source)
    adapters: dict[str, Adapter] = {}
    aliases: list[str] = []
    refused: dict[str, str] = {}
    for model in models:
        if model is base:
            continue
        try:
            adapter = _beside(base, model, models_dir)
        except BadModel as error:
            refused[model.name] = str(error)
            continue
        if adapter is None:
            aliases.append(model.name)
        else:
            adapters[model.name] = adapter
    tasks = {task for model in models if model.name not in refused for task in model.tasks}
    drafts = (
        [_draft(options.speculative.model, models_dir)] if options.speculative and options.speculative.model else []
    )
    return Serving(
        name=base.name,
        source=source,
        options=options,
        runner=_runner(tasks, options),
        convert="embed" if "embedding" in tasks and options.convert == "auto" else options.convert,
        reranks="rerank" in tasks,
        adapters=adapters,
        aliases=aliases,
        refused=refused,
        draft=drafts[0].where if drafts else "",
        sources=[source, *drafts],
        template=None if options.chat_template is None else file_text(options.chat_template, models_dir),
    )


def _runner(tasks: set[Task], options: VllmOptions) -> Literal["generate", "pooling"]:
    pooled = bool(tasks & _POOLED)
    if pooled and not tasks <= _POOLED:
        raise BadModel("embeddings and rankings need an engine of their own: serve them by a model and pool apart")
    if pooled and options.runner == "generate":
        raise BadModel("runner: generate gives no embeddings and no rankings; leave it away, or say pooling")
    if not pooled and options.runner == "pooling":
        raise BadModel("runner: pooling gives no text; leave it away, or give the model the task embedding or rerank")
    if pooled and options.speculative is not None:
        raise BadModel("speculative: only text is made token by token")
    return "pooling" if pooled else "generate"


def _beside(base: ServedModel, model: ServedModel, models_dir: Path) -> Adapter | None:
    """Read a further entry of the pool: an adapter, or None for another name of the base."""
    if model.source != base.source:
        raise BadModel(
            f"a worker serves one model by vLLM, here {base.name}, and its adapters: "
            f"give {model.name} a pool of its own"
        )
    if (set(model.tasks) <= _POOLED) is not (set(base.tasks) <= _POOLED):
        raise BadModel(f"its tasks are of another kind than those of {base.name}: give it a pool of its own")
    if model.options in ({}, base.options):
        return None
    try:
        shared = msgspec.convert(model.options, SharedOptions)
    except msgspec.ValidationError as error:
        raise BadModel(f"an option does not fit beside {base.name}, whose options hold for both: {error}") from None
    return read_adapter(shared.adapter, models_dir) if shared.adapter else None


def read_adapter(folder: str, models_dir: Path) -> Adapter:
    """Look at an adapter's folder, absolute or below that of the models. Raises BadModel."""
    where = Path(folder) if Path(folder).is_absolute() else models_dir / folder
    if ".." in where.parts:
        raise BadModel(f"adapter {folder!r} has `..` in it")
    if not (where / "adapter_model.safetensors").is_file():
        raise BadModel(f"adapter {folder!r} is no folder with an adapter_model.safetensors")
    try:
        config = json.loads((where / "adapter_config.json").read_bytes())
        rank = int(config["r"])
        highest = max([rank, *map(int, (config.get("rank_pattern") or {}).values())])
        rounded = next(each for each in _RANKS if each >= highest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        raise BadModel(f"adapter {folder!r} has no adapter_config.json that says its rank, at most 512") from None
    return Adapter(where=str(where.absolute()), rank=rounded)


def _draft(name: str, models_dir: Path) -> Source:
    try:
        return source_of(ServedModel(name="", tasks=[], source=name), models_dir)
    except BadModel as error:
        raise BadModel(f"speculative.model: {error}") from None
