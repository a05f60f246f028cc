"""What a catalog may say about a model on vLLM, and where its weights lie."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gateway.contract.pools import ServedModel

TINY = "tiny:"
MOST_TEMPLATE_BYTES = 256 * 1024
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

Positive = Annotated[int, Meta(ge=1)]


class BadModel(ValueError):
    """A model's source or options cannot be served. The message names what is wrong."""


Quantization = Literal[
    "awq",
    "awq_marlin",
    "compressed-tensors",
    "experts_int8",
    "fp8",
    "fp8_per_block",
    "fp8_per_channel",
    "fp8_per_tensor",
    "gptq",
    "gptq_marlin",
    "inc",
    "int8_per_channel_weight_only",
    "modelopt",
    "modelopt_fp4",
    "moe_wna16",
    "mxfp4",
    "mxfp8",
    "quark",
    "torchao",
]
"""Of vLLM's methods, those that read numbers only."""


class SpeculativeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens are guessed cheaply and checked several at once; what is drawn keeps its distribution."""

    method: Literal["ngram", "draft_model", "eagle", "eagle3", "mtp"]
    """`ngram` looks guesses up in the prompt; `draft_model` and the others ask a smaller model."""
    num_speculative_tokens: Annotated[int, Meta(ge=1, le=32)]
    model: str = ""
    """The smaller model, named as `source` is."""
    prompt_lookup_min: Annotated[int, Meta(ge=1, le=64)] | None = None
    prompt_lookup_max: Annotated[int, Meta(ge=1, le=64)] | None = None
    draft_tensor_parallel_size: Positive | None = None

    def __post_init__(self) -> None:
        """Hold the fields against each other. Raises ValueError."""
        if self.method == "ngram" and (self.model or self.prompt_lookup_max is None):
            raise ValueError("ngram needs prompt_lookup_max and takes no model")
        if self.method != "ngram" and (self.prompt_lookup_min or self.prompt_lookup_max):
            raise ValueError(f"{self.method} takes no prompt_lookup_min and prompt_lookup_max")
        if self.method in ("draft_model", "eagle", "eagle3") and not self.model:
            raise ValueError(f"{self.method} needs a model")


class VllmOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The allow-list: vLLM's engine arguments of these names. Code from a model's repository is never run."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    max_model_len: Positive | None = None
    """The context in tokens; None takes the model's own."""
    max_num_seqs: Positive = 64
    """How many sequences run at once."""
    max_num_batched_tokens: Positive | None = None
    kv_cache_memory_bytes: Positive | None = None
    kv_cache_dtype: Literal["auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] = "auto"
    block_size: Literal[16, 32, 64, 128] | None = None
    gpu_memory_utilization: Annotated[float, Meta(gt=0, le=1)] | None = None
    """The share of a GPU's memory that this process may use, weights and KV memory together."""
    cpu_offload_gb: Annotated[float, Meta(ge=0)] | None = None
    enforce_eager: bool = False
    quantization: Quantization | None = None
    tensor_parallel_size: Positive = 1
    pipeline_parallel_size: Positive = 1
    devices: list[Annotated[int, Meta(ge=0)]] = []
    """The GPUs that the workers of this pool share out among themselves; empty takes what CUDA shows."""
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    speculative: SpeculativeOptions | None = None
    max_loras: Positive | None = None
    """How many adapters may be used in one step; None is all, at most 8."""
    runner: Literal["auto", "generate", "pooling"] = "auto"
    convert: Literal["auto", "none", "embed", "classify"] = "auto"
    load_format: Literal["auto", "safetensors", "dummy", "runai_streamer"] = "auto"
    revision: Annotated[str, Meta(pattern=r"^[\w./-]{1,200}$")] | None = None
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    tool_parser: Annotated[str, Meta(pattern=r"^[\w-]{1,64}$")] | None = None
    """How this model writes tool calls: a name of vLLM's tool parsers, such as `hermes` or `llama3_json`."""
    chat_template: str | None = None
    """A file with the template of chats, or of a reranker's pairs; None takes the model's own."""


class SharedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a further name that a process serves beside its base model."""

    adapter: str = ""
    """The folder of a LoRA adapter; empty is another name for the base model."""


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
        return msgspec.convert({**defaults, **model.options}, VllmOptions)
    except msgspec.ValidationError as error:
        raise BadModel(f"an option does not fit: {error}") from None


def file_text(name: str, models_dir: Path) -> str:
    """Read a template: an absolute path, or one below the folder of models. Raises BadModel."""
    path = Path(name) if Path(name).is_absolute() else models_dir / name
    try:
        if ".." in Path(name).parts or path.stat().st_size > MOST_TEMPLATE_BYTES:
            raise BadModel(f"chat_template: {name!r} has `..` in it, or is above {MOST_TEMPLATE_BYTES} bytes")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadModel(f"chat_template: {name!r} cannot be read: {type(error).__name__}") from None
