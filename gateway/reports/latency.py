"""Latencies counted in 32 log buckets, as rollups keep them, and what percentiles they say.

Bucket n (from 0) ends at 1 ms * 1.6^n; the last has no end. `gateway/ledger/sql/latency.sql` counts by the same
ends, which the tests compare.
"""

from collections.abc import Sequence
from math import ceil, log

BUCKETS = 32
PLACE = 10**12
"""What the counts of one bucket stay below: in Postgres all of them are one number, each in 12 digits of its own."""
FIRST_END_US = 1000
FACTOR = 1.6


def counts_of(latencies: int) -> tuple[int, ...]:
    """Take the number apart that Postgres keeps the counts in."""
    counts = []
    while latencies:
        latencies, count = divmod(latencies, PLACE)
        counts.append(count)
    return tuple(counts + [0] * (BUCKETS - len(counts)))


def bucket_of(latency_us: int) -> int:
    """Say which bucket a latency falls into."""
    if latency_us <= FIRST_END_US:
        return 0
    return min(BUCKETS - 1, ceil(log(latency_us / FIRST_END_US) / log(FACTOR) - 1e-9))


def end_us(bucket: int) -> float:
    """Give the end of a bucket in microseconds; of the last one, where it would end."""
    return float(FIRST_END_US * FACTOR**bucket)


def percentile_us(counts: Sequence[int], share: float) -> int | None:
    """Estimate the latency that `share` (0 to 1) of the counted did not exceed; None where nothing was counted.

    Within its bucket it grows by a constant factor, as the buckets themselves do; within the first evenly from zero.
    So it is never off by more than the bucket: a factor of 1.6.
    """
    total = sum(counts)
    if total == 0:
        return None
    wanted, below = share * total, 0
    last = max(bucket for bucket, count in enumerate(counts) if count)
    for bucket, count in enumerate(counts[: last + 1]):
        if count and (below + count >= wanted or bucket == last):
            inside = min(max((wanted - below) / count, 0.0), 1.0)
            if bucket == 0:
                return round(FIRST_END_US * inside)
            return round(end_us(bucket - 1) * float(FACTOR**inside))
        below += count
    return None
