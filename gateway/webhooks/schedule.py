"""When a webhook that failed is tried again: eleven tries in a day, the last one 24 hours after the first."""

import random
from collections.abc import Sequence

RETRY_S: Sequence[float] = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 36_000)
"""Seconds from each failure to the next try; after the last of them the event is given up."""
JITTER = 0.1
"""Each pause is up to a tenth longer, so that what failed together does not come again together."""


def next_s(tries: int, schedule: Sequence[float] = RETRY_S) -> float | None:
    """Say how long to wait after the `tries`-th failure in a row; None where that was the last try."""
    if tries > len(schedule):
        return None
    return schedule[tries - 1] * (1 + random.random() * JITTER)
