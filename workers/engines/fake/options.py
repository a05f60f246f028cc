"""What a catalog entry may set for a model of the engine `fake`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Fault = Literal["none", "fail", "refuse", "lose", "crash", "hang"]
"""What goes wrong: the request fails, is refused, the engine is lost, the process dies, or nothing ever comes."""

FAULTS: frozenset[str] = frozenset({"fail", "refuse", "lose", "crash", "hang"})


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one fake model."""

    tokens: Annotated[int, Meta(ge=1, le=10_000)] = 20
    """The length of an answer that no limit cuts off."""
    interval_ms: Annotated[float, Meta(ge=0)] = 0.0
    """Milliseconds from one token or step to the next; 0 gives them all at once."""
    work_ms: Annotated[float, Meta(ge=0)] = 0.0
    """Milliseconds before the first token or step."""
    capacity: Annotated[int, Meta(ge=1)] = 512
    """How many requests run at once."""
    dimensions: Annotated[int, Meta(ge=1, le=4096)] = 16
    """The length of an embedding."""
    steps: Annotated[int, Meta(ge=1, le=30)] = 4
    """The steps of an image or a video that asks for no number of them."""
    behaviour: Fault = "none"
    """A fault that every request meets."""


def read_options(options: dict[str, Any]) -> FakeOptions:
    """Read the options of a model. Raises msgspec.ValidationError, which names the field."""
    return msgspec.convert(options, FakeOptions)
