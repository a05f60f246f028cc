"""What was measured of one target, as medians of its rounds: pure arithmetic."""

from collections.abc import Sequence
from statistics import median

import msgspec

from bench.accounting import Memory
from bench.client import LoadResult

TREE = "tree"
"""The name under which the CPU of all processes of a target together is kept."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One load and the CPU that each process of the target spent meanwhile."""

    load: LoadResult
    cpu_ms: dict[str, float]
    others_share: float = 0
    """The share of all processors that neither the target nor the load client took."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One target's figures; None was not measured."""

    requests_per_s: float | None = None
    cpu_per_request_ms: dict[str, float] = {}
    """By process, and for the `tree`."""
    saturated_p50_ms: float | None = None
    saturated_p99_ms: float | None = None
    paced_p50_ms: float | None = None
    """Latency over the engine's own, requests coming at a fixed rate."""
    paced_p99_ms: float | None = None
    paced_cpu_per_request_ms: float | None = None
    chunks_per_s: float | None = None
    chunk_cpu_ms: float | None = None
    dropped_chunks: int | None = None
    first_chunk_ms: float | None = None
    """The median time to the first chunk, over the engine's own, where all streams begin at the same moment."""
    spread_first_chunk_ms: float | None = None
    """The same where they begin one after the other."""
    memory: Memory | None = None
    others_percent: float | None = None
    """Processor time that went to neither the target nor the load client: how noisy the machine was."""
    failures: int = 0
    first_error: str = ""


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of one target."""

    target: str
    saturated: list[Round] = []
    paced: list[Round] = []
    streamed: list[Round] = []
    spread: list[Round] = []
    memory: Memory | None = None
    engine_ms: float = 0
    """The engine's own time for an answer."""
    engine_first_ms: float = 0
    """The engine's own time to its first chunk, where all streams begin at the same moment."""
    engine_spread_first_ms: float = 0
    """The same where they begin one after the other."""
    chunks_per_stream: int = 0


def cpu_per(rounds: Sequence[Round], name: str, count: str) -> float | None:
    """Give the median over rounds of the CPU-ms of process `name` per `count` (a field of LoadResult)."""
    shares = [each.cpu_ms[name] / getattr(each.load, count) for each in rounds if getattr(each.load, count)]
    return median(shares) if shares else None


def dropped(rounds: Sequence[Round], chunks_per_stream: int) -> int:
    """Count the chunks that did not come, over all streams that ended; a long stream hides no short one."""
    lost = 0
    for load in (each.load for each in rounds if each.load.streams):
        lost += max(0, chunks_per_stream * load.streams - load.events, chunks_per_stream - load.fewest_events)
    return lost


def summarize(rounds: Rounds) -> Figures:
    """Reduce rounds to figures."""
    everything = [*rounds.saturated, *rounds.paced, *rounds.streamed, *rounds.spread]
    streams = [*rounds.streamed, *rounds.spread]
    names = sorted({name for each in rounds.saturated for name in each.cpu_ms})
    cpu = {name: cpu_per(rounds.saturated, name, "answered") for name in names}
    return Figures(
        requests_per_s=_middle([each.load.per_second for each in rounds.saturated]),
        cpu_per_request_ms={name: share for name, share in cpu.items() if share is not None},
        saturated_p50_ms=_middle([each.load.latency_ms.p50 for each in rounds.saturated]),
        saturated_p99_ms=_middle([each.load.latency_ms.p99 for each in rounds.saturated]),
        paced_p50_ms=_middle([each.load.latency_ms.p50 - rounds.engine_ms for each in rounds.paced]),
        paced_p99_ms=_middle([each.load.latency_ms.p99 - rounds.engine_ms for each in rounds.paced]),
        paced_cpu_per_request_ms=cpu_per(rounds.paced, TREE, "answered"),
        chunks_per_s=_middle([each.load.events / each.load.seconds for each in rounds.streamed]),
        chunk_cpu_ms=cpu_per(rounds.streamed, TREE, "events"),
        dropped_chunks=dropped(streams, rounds.chunks_per_stream) if streams else None,
        first_chunk_ms=_first_chunk(rounds.streamed, rounds.engine_first_ms),
        spread_first_chunk_ms=_first_chunk(rounds.spread, rounds.engine_spread_first_ms),
        memory=rounds.memory,
        others_percent=_middle([100 * each.others_share for each in rounds.saturated]),
        failures=sum(each.load.failures for each in everything),
        first_error=next((each.load.first_error for each in everything if each.load.first_error), ""),
    )


def _first_chunk(streams: Sequence[Round], engine_ms: float) -> float | None:
    return _middle([each.load.first_event_ms.p50 - engine_ms for each in streams])


def _middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None
