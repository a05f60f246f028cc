"""Random weights for a Llama, with one direction that is not random.

Dimension 0 of the hidden state is held at a constant: every embedding has it, and no layer writes to
it. So column 0 of the output matrix acts as a bias, and is used to make whole words likelier than
single bytes and to end an answer now and then. Everything else is drawn from a normal distribution.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]

HELD = 8.0
"""The constant of dimension 0 in the residual stream; the other dimensions have deviation 1."""

WORD_LOGIT, OTHER_LOGIT, END_LOGIT, NEVER_LOGIT = 0.0, -8.0, 2.0, -40.0
SPREAD = 2.3
"""The deviation of the random part of the logits: some words are a hundred times likelier than others."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a tiny Llama. Heads are 32 wide, the least that vLLM's CPU attention takes."""

    layers: int = 2
    hidden: int = 128
    intermediate: int = 256
    heads: int = 4
    kv_heads: int = 2
    head: int = 32
    context_tokens: int = 4096


def transformer(shape: Shape, vocabulary: int, random: np.random.Generator) -> dict[str, Matrix]:
    """Draw the embedding and the layers, under the names that a `LlamaModel` saves them by."""

    def draw(rows: int, columns: int, *, writes: bool = False) -> Matrix:
        matrix = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(columns))
        if writes:
            matrix /= np.float32(np.sqrt(2 * shape.layers))  # so that many layers do not drown dimension 0
            matrix[0] = 0.0
        return matrix

    embedding = random.standard_normal((vocabulary, shape.hidden), dtype=np.float32)
    embedding[:, 0] = HELD
    ones = np.ones(shape.hidden, np.float32)
    tensors: dict[str, Matrix] = {"embed_tokens.weight": embedding, "norm.weight": ones}
    for layer in range(shape.layers):
        prefix = f"layers.{layer}."
        tensors |= {
            f"{prefix}input_layernorm.weight": ones,
            f"{prefix}post_attention_layernorm.weight": ones,
            f"{prefix}self_attn.q_proj.weight": draw(shape.heads * shape.head, shape.hidden),
            f"{prefix}self_attn.k_proj.weight": draw(shape.kv_heads * shape.head, shape.hidden),
            f"{prefix}self_attn.v_proj.weight": draw(shape.kv_heads * shape.head, shape.hidden),
            f"{prefix}self_attn.o_proj.weight": draw(shape.hidden, shape.heads * shape.head, writes=True),
            f"{prefix}mlp.gate_proj.weight": draw(shape.intermediate, shape.hidden),
            f"{prefix}mlp.up_proj.weight": draw(shape.intermediate, shape.hidden),
            f"{prefix}mlp.down_proj.weight": draw(shape.hidden, shape.intermediate, writes=True),
        }
    return tensors


class Likely(msgspec.Struct, frozen=True, kw_only=True):
    """Which tokens a tiny Llama prefers, ends with, and never says."""

    words: Sequence[int]
    end: int
    never: Sequence[int]


def output_matrix(shape: Shape, vocabulary: int, likely: Likely, random: np.random.Generator) -> Matrix:
    """Draw the output matrix; its column 0 is the bias that `likely` describes."""
    free = shape.hidden - 1
    held = HELD / np.sqrt((HELD**2 + free) / shape.hidden)  # dimension 0 behind the last norm
    matrix = random.standard_normal((vocabulary, shape.hidden), dtype=np.float32)
    matrix *= np.float32(SPREAD / np.sqrt(free))
    bias = np.full(vocabulary, OTHER_LOGIT, np.float32)
    bias[list(likely.words)] = WORD_LOGIT
    bias[list(likely.never)] = NEVER_LOGIT
    bias[likely.end] = END_LOGIT
    matrix[:, 0] = bias / np.float32(held)
    return matrix
