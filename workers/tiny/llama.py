"""The tiny Llamas: one that writes, one that writes slowly, one that embeds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from workers.tiny.models import TinyModel
from workers.tiny.tokenizer import build_tokenizer, word_ids, write_tokenizer
from workers.tiny.vocabulary import BEGIN, END, SPECIAL_TOKENS, TURN
from workers.tiny.weights import Likely, Shape, output_matrix, transformer

EMBEDDING_SIZES = (16, 32, 64, 128)
"""The sizes to which an embedding of `tiny-embed` may be cut."""


def write_causal(folder: Path, model: TinyModel) -> None:
    """Write a Llama that answers in random words."""
    _write_causal(folder, model, Shape())


def write_slow(folder: Path, model: TinyModel) -> None:
    """Write a Llama of 64 thin layers."""
    _write_causal(folder, model, Shape(layers=64, hidden=64, intermediate=64, heads=2, kv_heads=1))


def _write_causal(folder: Path, model: TinyModel, shape: Shape) -> None:
    tokenizer = _tokenizer(folder, shape)
    size = tokenizer.get_vocab_size()
    random = np.random.default_rng(model.seed)
    tensors = {f"model.{name}": tensor for name, tensor in transformer(shape, size, random).items()}
    ids = _special_ids()
    never = [each for token, each in ids.items() if token != END]
    likely = Likely(words=word_ids(tokenizer), end=ids[END], never=never)
    tensors["lm_head.weight"] = output_matrix(shape, size, likely, random)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = _config(model, shape, size) | {"architectures": ["LlamaForCausalLM"]}
    _write_json(folder / "config.json", config)
    generation = {"eos_token_id": ids[END], "pad_token_id": ids[BEGIN], "do_sample": True}
    _write_json(folder / "generation_config.json", generation)


def write_embedding(folder: Path, model: TinyModel) -> None:
    """Write a Llama that gives embeddings."""
    shape = Shape()
    tokenizer = _tokenizer(folder, shape)
    size = tokenizer.get_vocab_size()
    tensors = transformer(shape, size, np.random.default_rng(model.seed))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = _config(model, shape, size) | {
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
    pooling = {"word_embedding_dimension": shape.hidden, "pooling_mode_mean_tokens": True}
    _write_json(folder / "1_Pooling" / "config.json", pooling)


def _tokenizer(folder: Path, shape: Shape) -> Tokenizer:
    tokenizer = build_tokenizer()
    write_tokenizer(tokenizer, folder, shape.context_tokens)
    return tokenizer


def _config(model: TinyModel, shape: Shape, vocabulary: int) -> dict[str, Any]:
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
