"""The tiny reranker: a BERT that reads a query and a document together and gives one number."""

import json
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from tokenizers import processors

from workers.tiny.models import TinyModel
from workers.tiny.tokenizer import build_tokenizer, write_tokenizer
from workers.tiny.vocabulary import BEGIN, END, SPECIAL_TOKENS

Matrix = npt.NDArray[np.float32]

SPREAD = 2.0
"""The deviation of the logit: relevances fill the range from 0 to 1, and hardly any is at its edge."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a tiny BERT. Heads are 32 wide, the least that vLLM's CPU attention takes."""

    layers: int = 2
    hidden: int = 128
    intermediate: int = 256
    heads: int = 4
    context_tokens: int = 1024


def write_reranker(folder: Path, model: TinyModel) -> None:
    """Write a BERT that judges pairs of texts."""
    shape = _Shape()
    tokenizer = build_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        pair=f"{BEGIN} $A {END} $B:1 {END}:1",
        special_tokens=[(token, SPECIAL_TOKENS.index(token)) for token in (BEGIN, END)],
    )
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    write_tokenizer(tokenizer, folder, shape.context_tokens, model_input_names=inputs)
    tensors = _tensors(shape, tokenizer.get_vocab_size(), np.random.default_rng(model.seed))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "description": model.description,
        "weights": "random",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_act": "gelu",
        "max_position_embeddings": shape.context_tokens,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "torch_dtype": "float32",
        "pad_token_id": SPECIAL_TOKENS.index(BEGIN),
        "id2label": {"0": "relevance"},
        "label2id": {"relevance": 0},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def _tensors(shape: _Shape, vocabulary: int, random: np.random.Generator) -> dict[str, Matrix]:
    """Draw everything under the names that transformers saves a `BertForSequenceClassification` by."""
    tensors: dict[str, Matrix] = {}

    def norm(name: str) -> None:
        tensors[f"{name}.LayerNorm.weight"] = np.ones(shape.hidden, np.float32)
        tensors[f"{name}.LayerNorm.bias"] = np.zeros(shape.hidden, np.float32)

    def linear(name: str, rows: int, columns: int, deviation: float = 1.0) -> None:
        scale = np.float32(deviation / np.sqrt(columns))
        tensors[f"{name}.weight"] = random.standard_normal((rows, columns), dtype=np.float32) * scale
        tensors[f"{name}.bias"] = np.zeros(rows, np.float32)

    for name, rows in (("word", vocabulary), ("position", shape.context_tokens), ("token_type", 2)):
        table = random.standard_normal((rows, shape.hidden), dtype=np.float32)
        tensors[f"bert.embeddings.{name}_embeddings.weight"] = table
    norm("bert.embeddings")
    for layer in range(shape.layers):
        at = f"bert.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{at}.attention.{part}", shape.hidden, shape.hidden)
        norm(f"{at}.attention.output")
        linear(f"{at}.intermediate.dense", shape.intermediate, shape.hidden)
        linear(f"{at}.output.dense", shape.hidden, shape.intermediate)
        norm(f"{at}.output")
    linear("bert.pooler.dense", shape.hidden, shape.hidden)
    # The pooler's tanh gives numbers of deviation 0.63 where its own input has deviation 1.
    linear("classifier", 1, shape.hidden, SPREAD / 0.63)
    return tensors
