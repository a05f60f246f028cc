"""The tiny models by name, and how their folders come to be; the files of the families are imported when needed."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

import msgspec


class TinyModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that code can make."""

    name: str
    description: str
    seed: int
    write: str
    """The function `module:name` that writes it: takes the folder and this."""
    complete: str = "config.json"
    """The file that says by its being there that the folder is complete."""


TINY_MODELS: dict[str, TinyModel] = {
    each.name: each
    for each in (
        TinyModel(
            name="tiny-llama",
            description="A Llama of two layers whose weights are random: it answers in random words.",
            seed=1,
            write="workers.tiny.llama:write_causal",
        ),
        TinyModel(
            name="tiny-llama-slow",
            description="A Llama of 64 thin layers whose weights are random: slow on purpose, for tests.",
            seed=2,
            write="workers.tiny.llama:write_slow",
        ),
        TinyModel(
            name="tiny-embed",
            description="A Llama of two layers whose weights are random: it gives embeddings that mean nothing.",
            seed=3,
            write="workers.tiny.llama:write_embedding",
        ),
        TinyModel(
            name="tiny-sd",
            description="A Stable Diffusion whose weights are random: pictures of nothing, from text or pictures.",
            seed=10,
            write="workers.tiny.diffusers_images:write_stable_diffusion",
            complete="model_index.json",
        ),
        TinyModel(
            name="tiny-pix2pix",
            description="An InstructPix2Pix whose weights are random: it changes pictures, into nothing.",
            seed=11,
            write="workers.tiny.diffusers_images:write_pix2pix",
            complete="model_index.json",
        ),
        TinyModel(
            name="tiny-upscale",
            description="An upscaler by four whose weights are random: larger pictures of nothing.",
            seed=12,
            write="workers.tiny.diffusers_images:write_upscaler",
            complete="model_index.json",
        ),
        TinyModel(
            name="tiny-wan",
            description="A Wan whose weights are random: videos of nothing, from text.",
            seed=13,
            write="workers.tiny.diffusers_videos:write_wan",
            complete="model_index.json",
        ),
        TinyModel(
            name="tiny-ltx",
            description="An LTX whose weights are random: videos of nothing, from text or a first picture.",
            seed=14,
            write="workers.tiny.diffusers_videos:write_ltx",
            complete="model_index.json",
        ),
        TinyModel(
            name="tiny-rerank",
            description="A BERT of two layers whose weights are random: it orders documents without a reason.",
            seed=4,
            write="workers.tiny.bert:write_reranker",
        ),
        TinyModel(
            name="tiny-vits",
            description="A VITS whose weights are random: it hums and hisses for as long as its text would take.",
            seed=20,
            write="workers.tiny.vits:write_vits",
        ),
        TinyModel(
            name="tiny-speecht5",
            description="A SpeechT5 with vocoder and model of speakers, of random weights: no words, but voices.",
            seed=21,
            write="workers.tiny.speecht5:write_speecht5",
        ),
        TinyModel(
            name="tiny-musicgen",
            description="A MusicGen whose weights are random: noise of exactly the length that is asked for.",
            seed=22,
            write="workers.tiny.musicgen:write_musicgen",
        ),
        TinyModel(
            name="tiny-whisper",
            description="A Whisper whose weights are random: it hears random words, at random times.",
            seed=23,
            write="workers.tiny.whisper:write_whisper",
        ),
    )
}


class UnknownTinyModel(ValueError):
    """No tiny model has this name."""


def make_tiny(folder: Path, names: Sequence[str] = ()) -> list[tuple[Path, bool]]:
    """Make the named tiny models (all, when none is named) under `folder`; what is there stays as it is.

    Gives each model's folder, and whether it was made now. Two processes may do this at once: a model
    appears under its name complete or not at all. Raises UnknownTinyModel and OSError.
    """
    unknown = [name for name in names if name not in TINY_MODELS]
    if unknown:
        raise UnknownTinyModel(f"no tiny model is called {', '.join(unknown)}; there are {', '.join(TINY_MODELS)}")
    folder.mkdir(parents=True, exist_ok=True)
    return [_make(folder, TINY_MODELS[name]) for name in (names or TINY_MODELS)]


def _make(folder: Path, model: TinyModel) -> tuple[Path, bool]:
    target = folder / model.name
    if (target / model.complete).exists():
        return target, False
    draft = Path(tempfile.mkdtemp(prefix=f".{model.name}-", dir=folder))
    try:
        _write(draft, model)
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:
            if not (target / model.complete).exists():  # not another process that was faster
                raise
            return target, False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target, True


def _write(folder: Path, model: TinyModel) -> None:
    module, _, name = model.write.partition(":")
    cast(Callable[[Path, TinyModel], None], getattr(import_module(module), name))(folder, model)
    (folder / "README.md").write_text(
        f"# {model.name}\n\n{model.description}\n\n"
        "Its weights are random numbers, drawn by code from a fixed seed. It knows nothing, and exists so that the\n"
        "serving engines can be run and tested without any download.\n"
    )
