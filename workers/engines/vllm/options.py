"""What a catalog may say about a model on vLLM, and where its weights lie."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.contract.pools import ServedModel

TINY = "tiny:"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

Positive = Annotated[int, Meta(ge=1)]


class BadModel(ValueError):
    """A model's source or options cannot be served. The message names what is wrong."""


class VllmOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The allow-list: vLLM's engine arguments of these names. Code from a model's repository is never run."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    max_model_len: Positive | None = None
    """The context in tokens; None takes the model's own."""
    max_num_seqs: Positive = 64
    """How many sequences run at once."""
    max_num_batched_tokens: Positive | None = None
    kv_cache_memory_bytes: Positive | None = None
    gpu_memory_utilization: Annotated[float, Meta(gt=0, le=1)] | None = None
    enforce_eager: bool = False
    quantization: str | None = None
    tensor_parallel_size: Positive = 1
    enable_prefix_caching: bool | None = None
    runner: Literal["auto", "generate", "pooling"] = "auto"
    convert: Literal["auto", "none", "embed"] = "auto"
    load_format: Literal["auto", "safetensors", "dummy", "runai_streamer"] = "auto"
    revision: str | None = None
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    tool_parser: str | None = None
    """How this model writes tool calls: a name of vLLM's tool parsers, such as `hermes` or `llama3_json`."""


TINY_DEFAULTS: dict[str, Any] = {
    "dtype": "float32",
    "max_num_seqs": 32,
    "kv_cache_memory_bytes": 128 * 1024 * 1024,
    "enforce_eager": True,
}
"""What suits a model of a few megabytes on a processor: no compilation, and little memory set aside."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's files are: a folder, or a repository that vLLM fetches."""

    where: str
    local: bool
    tiny: str = ""
    """The name of the tiny model, which is made when its folder is missing."""


def source_of(model: ServedModel, models_dir: Path) -> Source:
    """Find out what `source` names. Raises BadModel."""
    source = model.source
    if source.startswith(TINY):
        name = source.removeprefix(TINY)
        return Source(where=str((models_dir / name).absolute()), local=True, tiny=name)
    for folder in (Path(source), models_dir / source):
        if source and (folder / "config.json").is_file():
            return Source(where=str(folder.absolute()), local=True)
    if _REPOSITORY.fullmatch(source):
        return Source(where=source, local=False)
    raise BadModel(
        f"source {source!r} is neither a folder with a config.json, nor a Hugging Face repository (owner/name), "
        f"nor {TINY}NAME"
    )


def options_of(model: ServedModel, source: Source) -> VllmOptions:
    """Check a model's options against the allow-list. Raises BadModel naming the one that does not fit."""
    defaults: Mapping[str, Any] = TINY_DEFAULTS if source.tiny else {}
    try:
        options = msgspec.convert({**defaults, **model.options}, VllmOptions)
    except msgspec.ValidationError as error:
        raise BadModel(f"an option does not fit: {error}") from None
    embeds = "embedding" in model.tasks
    if embeds and len(model.tasks) > 1:
        raise BadModel("embeddings need an engine of their own: serve them by a model and pool apart")
    if embeds:
        if options.runner == "generate":
            raise BadModel("runner: generate gives no embeddings; leave it away, or say pooling")
        convert = "embed" if options.convert == "auto" else options.convert
        return msgspec.structs.replace(options, runner="pooling", convert=convert)
    if options.runner == "pooling":
        raise BadModel("runner: pooling gives no text; leave it away, or give the model the task embedding")
    return msgspec.structs.replace(options, runner="generate")
