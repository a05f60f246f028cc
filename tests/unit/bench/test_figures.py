"""Figures are medians of rounds, and each is held to its bar."""

import msgspec
import pytest

from bench.accounting import Memory
from bench.bars import Bars, judge, judge_tree
from bench.client import LoadResult, Spread
from bench.figures import Figures, Round, Rounds, summarize
from bench.table import Column, render

NONE = Spread(p50=0, p90=0, p99=0, max=0)
LOAD = LoadResult(
    sent=100,
    answered=100,
    seconds=1,
    bad_status=0,
    cut=0,
    unfinished=0,
    reconnects=0,
    streams=0,
    incomplete_streams=0,
    events=0,
    fewest_events=0,
    most_events=0,
    latency_ms=NONE,
    first_event_ms=NONE,
    first_error="",
)


def taken(cpu_ms: float, **fields: object) -> Round:
    return Round(load=msgspec.structs.replace(LOAD, **fields), cpu_ms={"gateway": cpu_ms / 2, "tree": cpu_ms})


def streams(count: int, events: int, fewest: int) -> Round:
    return taken(10, streams=count, events=events, fewest_events=fewest)


def good() -> Figures:
    return Figures(
        requests_per_s=5000,
        cpu_per_request_ms={"gateway": 0.1, "tree": 0.25},
        paced_p50_ms=4,
        paced_p99_ms=10,
        dropped_chunks=0,
        first_chunk_ms=6,
        spread_first_chunk_ms=6,
        chunk_cpu_ms=0.04,
        memory=Memory(rss_mb=200, pss_mb=150),
    )


def test_the_median_round_counts() -> None:
    """One slow and one fast round do not move the figures."""
    rounds = [taken(20, answered=100), taken(90, answered=100, seconds=9), taken(30, answered=100, seconds=0.5)]
    figures = summarize(Rounds(target="x", saturated=rounds))
    assert figures.requests_per_s == 100
    assert figures.cpu_per_request_ms == pytest.approx({"gateway": 0.15, "tree": 0.3})


def test_answers_of_another_status_are_no_throughput() -> None:
    """A server that refuses quickly is not fast."""
    figures = summarize(Rounds(target="x", saturated=[taken(10, bad_status=60, first_error="500: no")]))
    assert (figures.requests_per_s, figures.failures, figures.first_error) == (40, 60, "500: no")


def test_latency_is_what_is_added_to_the_engine() -> None:
    """The engine's own time is taken off latencies and off the time to the first chunk."""
    spread = Spread(p50=12, p90=13, p99=15, max=20)
    rounds = Rounds(
        target="x",
        paced=[taken(1, latency_ms=spread)],
        streamed=[taken(1, first_event_ms=spread, streams=1, events=100, fewest_events=100)],
        spread=[taken(1, first_event_ms=msgspec.structs.replace(spread, p50=13), streams=1, events=100)],
        engine_ms=10,
        engine_first_ms=11,
        engine_spread_first_ms=11,
        chunks_per_stream=100,
    )
    figures = summarize(rounds)
    assert (figures.paced_p50_ms, figures.paced_p99_ms, figures.first_chunk_ms) == (2, 5, 1)
    assert figures.spread_first_chunk_ms == 2, "streams that begin one after the other are a figure of their own"


def test_dropped_chunks_are_counted() -> None:
    """A stream that is two chunks short is found, also beside one that is two too long."""
    short = Rounds(target="x", streamed=[streams(3, 298, 98)], chunks_per_stream=100)
    mixed = Rounds(target="x", streamed=[streams(3, 300, 98)], chunks_per_stream=100)
    whole = Rounds(target="x", streamed=[streams(3, 300, 100)], chunks_per_stream=100)
    later = Rounds(target="x", spread=[streams(3, 298, 98)], chunks_per_stream=100)
    assert [summarize(each).dropped_chunks for each in (short, mixed, whole, later)] == [2, 2, 0, 2]


def test_what_was_not_measured_is_no_figure() -> None:
    """A floor without streams has no chunk figures, and they pass no bar."""
    figures = summarize(Rounds(target="floor", saturated=[taken(10)]))
    assert figures.chunks_per_s is figures.dropped_chunks is figures.memory is None
    verdicts = {check.name: check.passed for check in judge(figures, figures, Bars())}
    assert not verdicts["dropped_chunks"]
    assert not verdicts["memory_mb"]


def test_figures_at_the_bars_pass() -> None:
    """The bars are inclusive."""
    assert all(check.passed for check in judge(good(), good(), Bars()))


@pytest.mark.parametrize(
    ("field", "value", "check"),
    [
        ("requests_per_s", 4999, "requests_per_s"),
        ("paced_p50_ms", 4.1, "paced_p50_ms"),
        ("paced_p99_ms", 10.1, "paced_p99_ms"),
        ("dropped_chunks", 1, "dropped_chunks"),
        ("first_chunk_ms", 6.1, "first_chunk_ms"),
        ("spread_first_chunk_ms", 6.1, "spread_first_chunk_ms"),
        ("chunk_cpu_ms", 0.041, "chunk_cpu_ms"),
        ("memory", Memory(rss_mb=201, pss_mb=1), "memory_mb"),
        ("failures", 1, "failures"),
    ],
)
def test_each_figure_beyond_its_bar_fails_alone(field: str, value: object, check: str) -> None:
    """A figure beyond its bar fails its check and no other."""
    checks = judge(msgspec.structs.replace(good(), **{field: value}), good(), Bars())
    assert [each.name for each in checks if not each.passed] == [check]


def test_on_a_slow_machine_the_floor_is_the_measure() -> None:
    """The tree passes within its bar, or within nine times the floor of the same run, and not beyond both."""
    slow = {"tree": 0.5}
    assert judge_tree(slow, {"tree": 0.056}, 0.25).passed
    assert not judge_tree(slow, {"tree": 0.055}, 0.25).passed
    assert judge_tree({"tree": 0.25}, {"tree": 0.001}, 0.25).passed
    assert not judge_tree(slow, {}, 0.25).passed


def test_the_table_shows_figures_processes_and_verdicts() -> None:
    """One line a figure and process, a column a target, and the judgement; checks without a line come last."""
    books = msgspec.structs.replace(judge(good(), good(), Bars())[0], name="books", measured="green", asked="green")
    bad = msgspec.structs.replace(good(), requests_per_s=1234.4)
    text = render(
        [Column(name="A", figures=bad), Column(name="B", figures=Figures())], [*judge(bad, bad, Bars()), books]
    )
    rows = [line.split("  ") for line in text.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[0] == ["A", "B", "asked"]
    assert cells[1] == ["requests/s, 64 callers", "1,234", "-", ">= 5,000", "FAIL"]
    assert ["gateway", "0.100", "-"] in cells
    assert cells[-1] == ["books", "green", "green", "pass"]
