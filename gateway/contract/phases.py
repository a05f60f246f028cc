"""Where the time of an attempt went."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class Phases(msgspec.Struct, array_like=True):
    """Microseconds an attempt spent in each phase. The field order is the wire format: append, never reorder."""

    queue_us: int = 0
    load_us: int = 0
    preprocess_us: int = 0
    transfer_us: int = 0
    forward_us: int = 0
    postprocess_us: int = 0
    store_us: int = 0

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the wall time of the block to `phase` (`"forward"`, ...), also when it raises."""
        field = phase + "_us"
        began = time.perf_counter_ns()
        try:
            yield
        finally:
            setattr(self, field, getattr(self, field) + (time.perf_counter_ns() - began) // 1000)


PHASE_NAMES: tuple[str, ...] = tuple(name.removesuffix("_us") for name in Phases.__struct_fields__)
