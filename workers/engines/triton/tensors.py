"""Makes the tensors of a request, as the model declares them, and reads those of a response.

A catalog gives no data types and no shapes: both are the model's own, read from the server. Where a declared
dimension may be any size, the first one stands for the items of a batch and each further one for a single value.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import InferInput, InferResult
from tritonclient.utils import triton_to_np_dtype

from workers.engine import EngineError, RefusedInput
from workers.engines.triton.connection import Signature, Tensor

Array = NDArray[Any]
Value = str | bool | int | float
ANY = -1
INTEGERS = {"INT32": 4, "INT64": 8}
"""The bytes of whole numbers, in the order of little-endian machines."""


def scalar(tensor: Tensor, value: Value) -> InferInput:
    """Make a tensor of one value."""
    return column(tensor, [value])


def column(tensor: Tensor, values: Sequence[Value]) -> InferInput:
    """Make a tensor of one value for each item of a batch."""
    shape = [len(values) if index == 0 and size == ANY else max(1, size) for index, size in enumerate(tensor.shape)]
    return _made(tensor, _array(tensor, values), shape)


def row(tensor: Tensor, values: Sequence[Value]) -> InferInput:
    """Make a tensor of several values for one item: the last dimension is theirs."""
    return _made(tensor, _array(tensor, values), [1] * (len(tensor.shape) - 1) + [len(values)])


def table(tensor: Tensor, rows: Array) -> InferInput:
    """Make a tensor of as many numbers for each item; of one item, it may have one dimension."""
    return _made(tensor, rows.astype(triton_to_np_dtype(tensor.dtype)), rows.shape if len(tensor.shape) > 1 else [-1])


def takes_batches(tensor: Tensor) -> bool:
    """Say whether a tensor takes more than one item."""
    return bool(tensor.shape) and tensor.shape[0] == ANY


def batch_limit(signature: Signature, names: Sequence[str], wanted: int) -> int:
    """Say how many items go into one call: as many as are wanted, within what the model takes."""
    if not all(takes_batches(signature.inputs[name]) for name in names):
        return 1
    return min(wanted, signature.max_batch) if signature.max_batch else wanted


def floats(result: InferResult, name: str) -> Array | None:
    """Read a tensor of numbers; None where the response has none of this name."""
    array = result.as_numpy(name)
    return None if array is None else np.asarray(array)


def whole_number(result: InferResult, name: str) -> int:
    """Read the sum of a tensor of whole numbers; 0 where the response has none of this name."""
    array = result.as_numpy(name)
    return 0 if array is None else int(np.sum(array))


def told(result: InferResult) -> dict[str, str | int]:
    """Read a response of text: of each output the first value, a text or a whole number.

    A stream has one for each token, so this reads the bytes themselves: a third of the time that arrays take.
    """
    response = result.get_response()
    found: dict[str, str | int] = {}
    for output, raw in zip(response.outputs, response.raw_output_contents, strict=True):
        if output.datatype == "BYTES":  # each value after its length in four bytes
            found[output.name] = raw[4 : 4 + int.from_bytes(raw[:4], "little")].decode("utf-8", "replace")
        elif output.datatype in INTEGERS:
            found[output.name] = int.from_bytes(raw[: INTEGERS[output.datatype]], "little", signed=True)
    return found


def needed(array: Array | None, name: str) -> Array:
    """Insist on an output. Raises EngineError."""
    if array is None or not array.size:
        raise EngineError(f"The model gave no {name}.")
    return array


def _array(tensor: Tensor, values: Sequence[Value]) -> Array:
    if tensor.dtype == "BYTES":
        return np.array([str(value).encode("utf-8", "replace") for value in values], dtype=np.object_)
    kind = np.dtype(triton_to_np_dtype(tensor.dtype))
    try:
        return np.array(values).astype(kind) if kind.kind == "f" else np.array(values, dtype=kind)
    except (OverflowError, ValueError, TypeError):
        raise RefusedInput(f"{tensor.name} does not fit what the model takes ({tensor.dtype}).") from None


def _made(tensor: Tensor, array: Array, shape: Sequence[int]) -> InferInput:
    shaped = array.reshape(shape)
    made = InferInput(tensor.name, list(shaped.shape), tensor.dtype)
    made.set_data_from_numpy(shaped)
    return made
