"""Who counts the tokens of a text.

`server`: the model does, by the outputs `num_input_tokens` and `num_output_tokens`, which TensorRT-LLM's ensemble has
since the middle of 2025 and gives on request (NVIDIA/TensorRT-LLM, pull request 5445): of a stream, each response tells
what it adds. Exact.

`tokenizer`: the tokenizer of the model's `source` counts the prompt, and each answer when it has ended; until then a
response counts as one token, as TensorRT-LLM streams them. An answer is never counted longer than it was allowed to
become: what is cut out of tokens can be cut into more of them.

`none`: a response counts as one token, and a prompt as nothing. Only where the catalog says so by name.

`auto` is the first of `server` and `tokenizer` that there is.
"""

from typing import Literal

from workers.engines.triton.connection import Signature
from workers.engines.triton.options import BadModel, TritonOptions
from workers.engines.triton.tokenizer import Tokenizer

Counts = Literal["server", "tokenizer", "none"]

ASK = ("return_num_input_tokens", "return_num_output_tokens")
TOLD = ("num_input_tokens", "num_output_tokens")


def counts_of(options: TritonOptions, signature: Signature, tokenizer: Tokenizer | None) -> Counts:
    """Decide who counts. Raises BadModel where nobody can, or not the one that the catalog names."""
    wanted = options.token_counts
    tells = all(name in signature.inputs for name in ASK) and all(name in signature.outputs for name in TOLD)
    if wanted in ("auto", "server") and tells:
        return "server"
    if wanted in ("auto", "tokenizer") and tokenizer is not None:
        return "tokenizer"
    if wanted == "none":
        if not signature.decoupled:
            raise BadModel("token_counts: none needs a model that streams, since each response counts as one token")
        return "none"
    raise BadModel(
        "nobody can count its tokens: the model does not tell them (return_num_input_tokens), so name in source the "
        "repository or folder of its tokenizer, or say token_counts: none"
    )
