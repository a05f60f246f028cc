"""The garbage collector, told what a long-running server is like.

What was made at the start stays for ever, and what a request makes is freed by counting references: full
collections find nothing and only cost time.
"""

import gc

YOUNG_OBJECTS = 100_000
"""Containers made before the youngest are looked through; Python's default is 700."""
YOUNG_ROUNDS = 20
OLD_ROUNDS = 100


def freeze_heap() -> None:
    """Leave everything made so far out of later collections, and collect the rest seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS)
