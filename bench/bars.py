"""The bars that Faregate's figures are held to, and the judgement."""

from collections.abc import Mapping

import msgspec

from bench.figures import TREE, Figures

FLOOR_FACTOR = 9
"""On a slow machine the whole tree may cost this many times what the bare `@asgi` route costs in the same run."""


class Bars(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of two cores that carry the load client too."""

    requests_per_s: float = 5000
    tree_cpu_ms: float = 0.25
    paced_p50_ms: float = 4
    paced_p99_ms: float = 10
    first_chunk_ms: float = 6
    chunk_cpu_ms: float = 0.04
    memory_mb: float = 200


class UpstreamBars(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the way to an upstream, for the whole tree and with every request charged."""

    tree_cpu_ms: float = 0.7
    chunk_cpu_ms: float = 0.1


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One judgement: what was asked, what was measured, and whether that passes."""

    name: str
    asked: str
    measured: str
    passed: bool


def _at_most(name: str, value: float | None, most: float, unit: str) -> Check:
    asked = f"<= {most:g} {unit}".rstrip()
    if value is None:
        return Check(name=name, asked=asked, measured="not measured", passed=False)
    return Check(name=name, asked=asked, measured=f"{value:.3g}", passed=value <= most)


def judge(figures: Figures, floor: Figures, bars: Bars) -> list[Check]:
    """Hold figures to the bars; `floor` is the bare `@asgi` route of the same run."""
    rate = figures.requests_per_s or 0
    return [
        Check(
            name="requests_per_s",
            asked=f">= {bars.requests_per_s:,.0f}",
            measured=f"{rate:,.0f}",
            passed=rate >= bars.requests_per_s,
        ),
        judge_tree(figures.cpu_per_request_ms, floor.cpu_per_request_ms, bars.tree_cpu_ms),
        _at_most("paced_p50_ms", figures.paced_p50_ms, bars.paced_p50_ms, "ms"),
        _at_most("paced_p99_ms", figures.paced_p99_ms, bars.paced_p99_ms, "ms"),
        _at_most("dropped_chunks", figures.dropped_chunks, 0, ""),
        _at_most("first_chunk_ms", figures.first_chunk_ms, bars.first_chunk_ms, "ms"),
        _at_most("spread_first_chunk_ms", figures.spread_first_chunk_ms, bars.first_chunk_ms, "ms"),
        _at_most("chunk_cpu_ms", figures.chunk_cpu_ms, bars.chunk_cpu_ms, "ms"),
        _at_most("memory_mb", figures.memory.rss_mb if figures.memory else None, bars.memory_mb, "MB"),
        _at_most("failures", figures.failures, 0, ""),
    ]


def judge_upstream(figures: Figures, bars: UpstreamBars) -> list[Check]:
    """Hold the figures of the way to an upstream to their bars."""
    return [
        _at_most("upstream_tree_cpu_ms", figures.cpu_per_request_ms.get(TREE), bars.tree_cpu_ms, "ms"),
        _at_most("upstream_chunk_cpu_ms", figures.chunk_cpu_ms, bars.chunk_cpu_ms, "ms"),
        _at_most("upstream_dropped_chunks", figures.dropped_chunks, 0, ""),
        _at_most("upstream_failures", figures.failures, 0, ""),
    ]


def judge_tree(cpu: Mapping[str, float], floor: Mapping[str, float], most: float) -> Check:
    """Hold the tree's CPU per request to its bar, or to the floor of the same run."""
    asked = f"<= {most:g} ms or {FLOOR_FACTOR} x floor"
    if TREE not in cpu or not floor.get(TREE):
        return Check(name="tree_cpu_ms", asked=asked, measured="not measured", passed=False)
    times = cpu[TREE] / floor[TREE]
    measured = f"{cpu[TREE]:.3f} ({times:.1f} x floor)"
    return Check(name="tree_cpu_ms", asked=asked, measured=measured, passed=cpu[TREE] <= most or times <= FLOOR_FACTOR)
