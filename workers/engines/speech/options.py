"""What a catalog may say about a model of the engine `speech`, and where its weights lie."""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.contract.pools import ServedModel

TINY = "tiny:"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

FamilyName = Literal["espeak", "vits", "speecht5", "waveform", "musicgen", "whisper"]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class BadModel(ValueError):
    """A model's source or options cannot be served. The message names what is wrong."""


class SpeechOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The allow-list. Code from a model's repository is never run, and only safetensors are read."""

    family: FamilyName | None = None
    """Which kind of model this is; None finds it from its config.json, and takes espeak-ng where there is no source."""
    voice: str | None = None
    """The voice where a caller names none."""
    language: str | None = None
    """The language that a model of one language speaks, or that Whisper is told where a caller names none."""
    concurrency: Positive = 1
    """How many requests the worker takes at once: one computes, the others are read and decoded meanwhile."""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`; `auto` is the first GPU, else the processor."""
    threads: Positive | None = None
    """The processor's threads of torch, of all models of the worker; None leaves torch's own choice."""
    revision: str | None = None
    vocoder: str | None = None
    """SpeechT5: the HiFi-GAN, as a folder inside the source, a folder, or a repository; None is `vocoder`."""
    speaker_encoder: str | None = None
    """SpeechT5: the model for x-vectors, named as the vocoder is; None is `speaker` where the source has it."""
    speaker_file: str | None = None
    """SpeechT5: a safetensors file with the tensor `speaker`, the voice of text-to-speech; None is a neutral one."""
    sample_min_s: Seconds = 1.0
    sample_max_s: Seconds = 30.0
    """How short and how long the sample of a voice may be."""
    max_seconds: Seconds | None = None
    """The longest music (None: 30) or the longest sound to transcribe (None: 3600)."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's files are: a folder, or a repository that is fetched."""

    where: str
    local: bool
    tiny: str = ""
    """The name of the tiny model, which is made when its folder is missing."""


def source_of(name: str, models_dir: Path) -> Source:
    """Find out what `source` names. Raises BadModel."""
    if name.startswith(TINY):
        tiny = name.removeprefix(TINY)
        return Source(where=str((models_dir / tiny).absolute()), local=True, tiny=tiny)
    for folder in (Path(name), models_dir / name):
        if name and (folder / "config.json").is_file():
            return Source(where=str(folder.absolute()), local=True)
    if _REPOSITORY.fullmatch(name):
        return Source(where=name, local=False)
    raise BadModel(
        f"source {name!r} is neither a folder with a config.json, nor a Hugging Face repository (owner/name), "
        f"nor {TINY}NAME"
    )


def part_of(source: Source, name: str, models_dir: Path) -> Source:
    """Find a second model that belongs to a first: a folder inside its source, or a source of its own."""
    inside = Path(source.where) / name
    if source.local and (inside / "config.json").is_file():
        return Source(where=str(inside), local=True)
    return source_of(name, models_dir)


def options_of(model: ServedModel) -> SpeechOptions:
    """Check a model's options. Raises BadModel naming the one that does not fit."""
    try:
        options = msgspec.convert(model.options, SpeechOptions)
    except msgspec.ValidationError as error:
        raise BadModel(f"an option does not fit: {error}") from None
    if options.sample_min_s >= options.sample_max_s:
        raise BadModel("sample_min_s must be less than sample_max_s")
    return options
