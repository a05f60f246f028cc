"""Percentiles of latencies that are only known by their buckets."""

from gateway.reports.latency import BUCKETS, FACTOR, bucket_of, end_us, percentile_us


def counted(*latencies_us: int) -> list[int]:
    counts = [0] * BUCKETS
    for latency in latencies_us:
        counts[bucket_of(latency)] += 1
    return counts


def test_a_bucket_ends_where_the_next_begins() -> None:
    for bucket in range(BUCKETS - 1):
        end = int(end_us(bucket))
        assert bucket_of(end) == bucket
        assert bucket_of(end + end // 100_000 + 1) == bucket + 1
    assert bucket_of(0) == 0
    assert bucket_of(10**15) == BUCKETS - 1


def test_percentiles_are_off_by_less_than_a_bucket() -> None:
    latencies = [(place * place * 37) % 2_000_000 + 5_000 for place in range(1, 2000)]
    for share in (0.05, 0.5, 0.95, 0.99):
        exact = sorted(latencies)[int(share * len(latencies)) - 1]
        found = percentile_us(counted(*latencies), share)
        assert found is not None
        assert exact / FACTOR <= found <= exact * FACTOR


def test_percentiles_grow_with_the_share_and_stay_in_the_last_bucket() -> None:
    counts = counted(500, 3_000, 3_000, 90_000, 10**13)
    found = [percentile_us(counts, share / 100) or 0 for share in range(101)]
    assert found == sorted(found)
    assert found[-1] == round(end_us(BUCKETS - 1))


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile_us([0] * BUCKETS, 0.5) is None
    assert percentile_us([], 0.5) is None
