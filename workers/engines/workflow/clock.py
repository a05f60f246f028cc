"""Which phase the time of a run belongs to: every microsecond to one, although several things go on at once."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from gateway.contract.phases import Phases

Work = Literal["forward", "postprocess", "transfer"]
ORDER: tuple[Work, ...] = ("forward", "postprocess", "transfer")
"""Whichever of these goes on first in this order has the time; where none does, templates are filled: preprocess."""


class Clock:
    """Counts up the phases of one run from the moment it is made."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._under_way = dict.fromkeys(ORDER, 0)
        self._since_ns = time.perf_counter_ns()

    @contextmanager
    def during(self, work: Work) -> Iterator[None]:
        """Note that some work goes on for the length of a block."""
        self.tally()
        self._under_way[work] += 1
        try:
            yield
        finally:
            self.tally()
            self._under_way[work] -= 1

    def tally(self) -> None:
        """Give the time since the last look to its phase."""
        now_ns = time.perf_counter_ns()
        field = next((work for work in ORDER if self._under_way[work]), "preprocess") + "_us"
        setattr(self._phases, field, getattr(self._phases, field) + (now_ns - self._since_ns) // 1000)
        self._since_ns = now_ns
