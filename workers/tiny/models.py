"""The tiny models by name, and how their folders are written."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from workers.tiny.tokenizer import build_tokenizer, word_ids, write_tokenizer
from workers.tiny.vocabulary import BEGIN, END, SPECIAL_TOKENS, TURN
from workers.tiny.weights import Likely, Shape, output_matrix, transformer

EMBEDDING_SIZES = (16, 32, 64, 128)
"""The sizes to which an embedding of `tiny-embed` may be cut."""


class TinyModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that code can make."""

    name: str
    description: str
    shape: Shape
    seed: int
    embeds: bool = False


TINY_MODELS: dict[str, TinyModel] = {
    each.name: each
    for each in (
        TinyModel(
            name="tiny-llama",
            description="A Llama of two layers whose weights are random: it answers in random words.",
            shape=Shape(),
            seed=1,
        ),
        TinyModel(
            name="tiny-llama-slow",
            description="A Llama of 64 thin layers whose weights are random: slow on purpose, for tests.",
            shape=Shape(layers=64, hidden=64, intermediate=64, heads=2, kv_heads=1),
            seed=2,
        ),
        TinyModel(
            name="tiny-embed",
            description="A Llama of two layers whose weights are random: it gives embeddings that mean nothing.",
            shape=Shape(),
            seed=3,
            embeds=True,
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
    if (target / "config.json").exists():
        return target, False
    draft = Path(tempfile.mkdtemp(prefix=f".{model.name}-", dir=folder))
    try:
        _write(draft, model)
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:
            if not (target / "config.json").exists():  # not another process that was faster
                raise
            return target, False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target, True


def _write(folder: Path, model: TinyModel) -> None:
    tokenizer = build_tokenizer()
    write_tokenizer(tokenizer, folder, model.shape.context_tokens)
    write = _write_embedding if model.embeds else _write_causal
    write(folder, model, tokenizer)
    (folder / "README.md").write_text(
        f"# {model.name}\n\n{model.description}\n\n"
        "Its weights are random numbers, drawn by code from a fixed seed. It knows nothing, and exists so that the\n"
        "serving engines can be run and tested without any download.\n"
    )


def _write_causal(folder: Path, model: TinyModel, tokenizer: Tokenizer) -> None:
    size = tokenizer.get_vocab_size()
    random = np.random.default_rng(model.seed)
    tensors = {f"model.{name}": tensor for name, tensor in transformer(model.shape, size, random).items()}
    ids = _special_ids()
    never = [each for token, each in ids.items() if token != END]
    likely = Likely(words=word_ids(tokenizer), end=ids[END], never=never)
    tensors["lm_head.weight"] = output_matrix(model.shape, size, likely, random)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = _config(model, size) | {"architectures": ["LlamaForCausalLM"]}
    _write_json(folder / "config.json", config)
    generation = {"eos_token_id": ids[END], "pad_token_id": ids[BEGIN], "do_sample": True}
    _write_json(folder / "generation_config.json", generation)


def _write_embedding(folder: Path, model: TinyModel, tokenizer: Tokenizer) -> None:
    size = tokenizer.get_vocab_size()
    tensors = transformer(model.shape, size, np.random.default_rng(model.seed))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = _config(model, size) | {
        "architectures": ["LlamaModel"],
        "matryoshka_dimensions": list(EMBEDDING_SIZES),
    }
    _write_json(folder / "config.json", config)
    # The layout of sentence-transformers, from which vLLM takes the pooling.
    modules = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize")]
    _write_json(
        folder / "modules.json",
        [
            {"idx": int(index), "name": index, "path": path, "type": f"sentence_transformers.models.{kind}"}
            for index, path, kind in modules
        ],
    )
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": model.shape.hidden, "pooling_mode_mean_tokens": True}
    _write_json(folder / "1_Pooling" / "config.json", pooling)


def _config(model: TinyModel, vocabulary: int) -> dict[str, Any]:
    shape = model.shape
    ids = _special_ids()
    return {
        "model_type": "llama",
        "description": model.description,
        "weights": "random",
        "vocab_size": vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context_tokens,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": ids[TURN],
        "eos_token_id": ids[END],
        "pad_token_id": ids[BEGIN],
    }


def _special_ids() -> dict[str, int]:
    """Give the ids of the special tokens: training puts them first, in their order."""
    return {token: index for index, token in enumerate(SPECIAL_TOKENS)}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
