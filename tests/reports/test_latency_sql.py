"""Latencies fall into the same buckets in Postgres and in Python."""

import asyncpg

from gateway.reports.latency import BUCKETS, PLACE, bucket_of, counts_of, end_us


async def test_both_count_by_the_same_ends(database_url: str) -> None:
    ends = [int(end_us(bucket)) for bucket in range(BUCKETS)]
    probes = sorted({0, 1, 10**14, *ends, *(end - 1 for end in ends), *(end + 1 for end in ends)})
    connection = await asyncpg.connect(database_url)
    found = await connection.fetch("select latency_bucket(us) as bucket from unnest($1::bigint[]) us", probes)
    await connection.close()
    assert [row["bucket"] for row in found] == [bucket_of(probe) for probe in probes]


async def test_counts_of_all_buckets_stand_in_one_number(database_url: str) -> None:
    latencies = [int(end_us(bucket)) for bucket in range(BUCKETS) for _ in range(bucket + 1)]
    connection = await asyncpg.connect(database_url)
    summed = "select sum(latency_count(us)) from unnest($1::bigint[]) us"
    assert counts_of(int(await connection.fetchval(summed, latencies))) == tuple(range(1, BUCKETS + 1))
    many = "select latency_count(0) * ($1::bigint - 1) + latency_count(1600) * 7 + latency_count(0)"
    assert counts_of(int(await connection.fetchval(many, PLACE - 1)))[:3] == (PLACE - 1, 7, 0)
    await connection.close()
    assert counts_of(0) == (0,) * BUCKETS
