"""The table that a run prints: one line a figure, one column a target, then the bar and the judgement."""

from collections.abc import Callable, Sequence

import msgspec

from bench.bars import Check
from bench.figures import TREE, Figures

Reader = Callable[[Figures], float | int | None]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table: its words, how to read it, how to write it, and the check that judges it."""

    words: str
    read: Reader
    form: str = "{:.3f}"
    check: str = ""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One target's figures under its name."""

    name: str
    figures: Figures


def _cpu(name: str) -> Reader:
    return lambda figures: figures.cpu_per_request_ms.get(name)


def _memory(field: str) -> Reader:
    return lambda figures: getattr(figures.memory, field) if figures.memory else None


def _process_lines(columns: Sequence[Column]) -> list[Line]:
    """One line for each process of the first target, heaviest first."""
    shares = columns[0].figures.cpu_per_request_ms
    names = sorted((name for name in shares if name != TREE), key=lambda name: -shares[name])
    return [Line(words=f"    {name}", read=_cpu(name)) for name in names]


def lines(columns: Sequence[Column]) -> list[Line]:
    """Give the lines of a table with these columns."""
    return [
        Line(words="requests/s, 64 callers", read=lambda f: f.requests_per_s, form="{:,.0f}", check="requests_per_s"),
        Line(words="CPU-ms a request, all processes", read=_cpu(TREE), check="tree_cpu_ms"),
        *_process_lines(columns),
        Line(words="latency of 64 callers, p50 ms", read=lambda f: f.saturated_p50_ms, form="{:.2f}"),
        Line(words="latency of 64 callers, p99 ms", read=lambda f: f.saturated_p99_ms, form="{:.2f}"),
        Line(words="added latency at 50/s, p50 ms", read=lambda f: f.paced_p50_ms, form="{:.2f}", check="paced_p50_ms"),
        Line(words="added latency at 50/s, p99 ms", read=lambda f: f.paced_p99_ms, form="{:.2f}", check="paced_p99_ms"),
        Line(words="CPU-ms a request at 50/s", read=lambda f: f.paced_cpu_per_request_ms, form="{:.2f}"),
        Line(words="chunks/s, 50 streams", read=lambda f: f.chunks_per_s, form="{:,.0f}"),
        Line(words="chunks dropped", read=lambda f: f.dropped_chunks, form="{:d}", check="dropped_chunks"),
        Line(
            words="added to a first chunk, all begin at once, ms",
            read=lambda f: f.first_chunk_ms,
            form="{:.2f}",
            check="first_chunk_ms",
        ),
        Line(
            words="    begun one after the other",
            read=lambda f: f.spread_first_chunk_ms,
            form="{:.2f}",
            check="spread_first_chunk_ms",
        ),
        Line(words="CPU-ms a chunk, all processes", read=lambda f: f.chunk_cpu_ms, form="{:.4f}", check="chunk_cpu_ms"),
        Line(words="memory after load, RSS MB", read=_memory("rss_mb"), form="{:.0f}", check="memory_mb"),
        Line(words="    shared pages divided, PSS MB", read=_memory("pss_mb"), form="{:.0f}"),
        Line(words="processors idle or with others, %", read=lambda f: f.others_percent, form="{:.0f}"),
        Line(words="failed requests", read=lambda f: f.failures, form="{:d}", check="failures"),
    ]


def render(columns: Sequence[Column], checks: Sequence[Check]) -> str:
    """Write the table; checks that no line shows come below it."""
    by_name = {check.name: check for check in checks}
    rows = [["", *(column.name for column in columns), "asked", ""]]
    for line in lines(columns):
        values = [_write(line, column.figures) for column in columns]
        check = by_name.pop(line.check, None)
        rows.append([line.words, *values, *(_verdict(check) if check else ("", ""))])
    blank = [""] * (len(columns) - 1)
    rows += [[check.name, check.measured, *blank, *_verdict(check)] for check in by_name.values()]
    return "\n".join(_aligned(rows))


def _write(line: Line, figures: Figures) -> str:
    value = line.read(figures)
    return "-" if value is None else line.form.format(value)


def _verdict(check: Check) -> tuple[str, str]:
    return check.asked, "pass" if check.passed else "FAIL"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    out = []
    for row in rows:
        head = row[0].ljust(widths[0])
        middle = [cell.rjust(width) for cell, width in zip(row[1:-2], widths[1:-2], strict=True)]
        tail = [cell.ljust(width) for cell, width in zip(row[-2:], widths[-2:], strict=True)]
        out.append("  ".join([head, *middle, *tail]).rstrip())
    return out
