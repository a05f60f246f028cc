"""From a caller's fields to the inputs of TensorRT-LLM's `ensemble`.

Names, types and meaning: `config.pbtxt` of `inflight_batcher_llm/ensemble` in NVIDIA/TensorRT-LLM. An ensemble may
lack any input but the prompt and the limit; a field that it has no input for is refused, never dropped.
"""

from collections.abc import Container, Iterator
from typing import Any

from tritonclient.grpc import InferInput

from gateway.contract.inputs import ChatInput, CompletionInput
from workers.engine import RefusedInput
from workers.engines.triton.connection import Signature
from workers.engines.triton.counting import ASK
from workers.engines.triton.options import BadModel, TritonOptions
from workers.engines.triton.tensors import Value, row, scalar

NEEDED = ("text_input", "max_tokens")
TEXT = "text_output"
NUMBERS = ("temperature", "top_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "min_tokens")
SEEDS = ("seed", "random_seed")
"""What the input is called, now and in earlier releases."""
NO_END = -1
"""The `end_id` at which no answer ends."""
EVERY = -1
"""The `top_k` of a caller who wants all tokens considered."""
_SEEDS = 2**62


def check_ensemble(signature: Signature) -> None:
    """Check that a model is what TensorRT-LLM's `ensemble` is. Raises BadModel."""
    missing = [name for name in NEEDED if name not in signature.inputs]
    if missing or TEXT not in signature.outputs:
        raise BadModel(f"the model has no {(missing or [TEXT])[0]}: it is not like TensorRT-LLM's ensemble")


def check_fields(given: ChatInput | CompletionInput) -> None:
    """Refuse what the ensemble cannot do. Raises RefusedInput naming the field."""
    if isinstance(given, ChatInput) and given.tools and given.tool_choice != "none":
        raise RefusedInput("This model calls no tools: leave tools out.")
    if given.response_format is not None and given.response_format.__struct_config__.tag != "text":
        raise RefusedInput("This model keeps to no format: leave response_format out.")
    if given.logprobs is not None and given.logprobs is not False:
        raise RefusedInput("This model gives no log-probabilities: leave logprobs out.")
    if given.min_p:
        raise RefusedInput("This model does not take min_p: leave it out.")
    if (given.n or 1) > 1 and given.temperature == 0:
        raise RefusedInput("n must be 1 at temperature 0: all choices would be the same.")


def sampling_inputs(
    signature: Signature, options: TritonOptions, given: ChatInput | CompletionInput, stops: list[str]
) -> list[InferInput]:
    """Make the inputs that all choices share. Raises RefusedInput for a field that the model lacks."""
    known = signature.inputs
    made = [
        row(known[name], value) if isinstance(value, list) else scalar(known[name], value)
        for name, value in options.constants.items()
    ]
    for name, value in _values(given, known):
        if name not in known:
            raise RefusedInput(f"This model does not take {'ignore_eos' if name == 'end_id' else name}: leave it out.")
        if name not in options.constants:
            made.append(scalar(known[name], value))
    if stops and "stop_words" in known and "stop_words" not in options.constants:
        made.append(row(known["stop_words"], stops))
    asks: dict[str, bool] = {"stream": signature.decoupled, "exclude_input_in_output": True, ASK[0]: True, ASK[1]: True}
    made += [scalar(known[name], value) for name, value in asks.items() if name in known]
    return made


def _values(given: ChatInput | CompletionInput, known: Container[str]) -> Iterator[tuple[str, Value]]:
    """Give the name and value of each input that the caller's fields ask for."""
    fields: dict[str, Any] = {name: getattr(given, name) for name in (*NUMBERS, "top_k")}
    if fields["top_k"] == EVERY:
        fields["top_k"] = None
    if fields["temperature"] == 0 and "top_k" in known:  # not every release takes 0; the first of one is the likeliest
        fields |= {"temperature": None, "top_p": None, "top_k": 1}
    drawn = fields["temperature"] is not None or (given.n or 1) > 1
    if drawn and fields["top_p"] is None and fields["top_k"] is None and "top_p" in known:
        fields["top_p"] = 1.0  # with neither of the two TensorRT-LLM takes the likeliest token at any temperature
    yield from ((name, value) for name, value in fields.items() if value is not None)
    if given.ignore_eos:
        yield "end_id", NO_END


def seed_input(signature: Signature, seed: int | None, choice: int) -> list[InferInput]:
    """Make the input of the seed: each choice adds its number, so that they differ. Raises RefusedInput."""
    if seed is None:
        return []
    name = next((name for name in SEEDS if name in signature.inputs), None)
    if name is None:
        raise RefusedInput("This model does not take seed: leave it out.")
    return [scalar(signature.inputs[name], seed % _SEEDS + choice)]
