"""Embeddings of the fake engine: a unit vector that depends on the text alone."""

import math
from array import array
from hashlib import shake_128

from gateway.contract.events import VectorOutput
from gateway.contract.inputs import EmbeddingInput
from workers.engine import RefusedInput

MOST_DIMENSIONS = 4096


def texts_of(given: EmbeddingInput) -> list[str]:
    """Give the texts of an input."""
    return [given.input] if isinstance(given.input, str) else given.input


def embed(given: EmbeddingInput, dimensions: int) -> VectorOutput:
    """Make one vector for each text; `dimensions` where the input names none. Raises RefusedInput."""
    size = given.dimensions or dimensions
    if size > MOST_DIMENSIONS:
        raise RefusedInput(f"The fake engine has at most {MOST_DIMENSIONS} dimensions.")
    return VectorOutput([_vector(text, size) for text in texts_of(given)], size)


def _vector(text: str, size: int) -> bytes:
    numbers = [byte - 127.5 for byte in shake_128(text.encode()).digest(size)]
    length = math.sqrt(sum(number * number for number in numbers))
    vector = array("f", (number / length for number in numbers))
    return vector.tobytes()
