"""What a catalog may say about a model on diffusers, and where its weights lie."""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.contract.pools import ServedModel

TINY = "tiny:"
INDEX = "model_index.json"
"""The file that makes a folder a pipeline."""
MIB = 1024 * 1024
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

Positive = Annotated[int, Meta(ge=1)]


class BadModel(ValueError):
    """A model's source or options cannot be served. The message names what is wrong."""


class DiffusersOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one model. Weights are read from safetensors alone, and code from a repository is never run."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    """The precision; `auto` is bfloat16 on a GPU and float32 on a processor."""
    quantization: Literal["float8", "int8"] | None = None
    """Weights in 8 bits: `float8` by diffusers itself, `int8` by torchao, which is to be installed beside."""
    device: Annotated[str, Meta(pattern=r"^(auto|cpu|cuda(:[0-9]{1,2})?)$")] = "auto"
    revision: str | None = None
    variant: str | None = None
    """Which of several weight files a repository has, such as `fp16`."""
    vae_tiling: bool = False
    """Decode large images piece by piece, in less memory."""
    max_batch: Annotated[int, Meta(ge=1, le=256)] = 4
    """How many images are drawn at once at most; halved for good whenever memory does not suffice."""
    batch_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0
    """How long a request may wait for company."""
    memory_mb: Positive | None = None
    """What the model takes of the worker's memory budget; its weights are counted where this is left out."""
    threads: Annotated[int, Meta(ge=1, le=1024)] | None = None
    """Processor threads of one forward pass; torch's own choice where it is left out, one for a tiny model."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's files are: a folder, or a repository that is fetched."""

    where: str
    local: bool
    tiny: str = ""
    """The name of the tiny model, which is made when its folder is missing."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A model that this worker is to serve."""

    model: ServedModel
    source: Source
    options: DiffusersOptions


def read_entry(model: ServedModel, models_dir: Path) -> Entry:
    """Check a model's source and options. Raises BadModel naming what does not fit."""
    source = _source_of(model.source, models_dir)
    try:
        options = msgspec.convert(model.options, DiffusersOptions)
    except msgspec.ValidationError as error:
        raise BadModel(f"an option does not fit: {error}") from None
    if source.tiny and options.threads is None:
        options = msgspec.structs.replace(options, threads=1)  # on more, a tiny model is ten times slower
    return Entry(model=model, source=source, options=options)


def _source_of(source: str, models_dir: Path) -> Source:
    if source.startswith(TINY):
        name = source.removeprefix(TINY)
        return Source(where=str((models_dir / name).absolute()), local=True, tiny=name)
    for folder in (Path(source), models_dir / source):
        if source and (folder / INDEX).is_file():
            return Source(where=str(folder.absolute()), local=True)
    if _REPOSITORY.fullmatch(source):
        return Source(where=source, local=False)
    raise BadModel(
        f"source {source!r} is neither a folder with a {INDEX}, nor a Hugging Face repository (owner/name), "
        f"nor {TINY}NAME"
    )


def declared_bytes(entry: Entry) -> int:
    """Give what a model takes before it was ever loaded: as declared, else its files; 0 where nobody knows."""
    if entry.options.memory_mb is not None:
        return entry.options.memory_mb * MIB
    if not entry.source.local:
        return 0
    return sum(path.stat().st_size for path in Path(entry.source.where).rglob("*.safetensors"))
