"""A bare engine beside the same engine through a worker: what was measured, what was added, and the table."""

from collections.abc import Sequence
from statistics import median

import msgspec

from bench.bars import Check

MOST_ADDED_PERCENT = 3.0
"""What a worker may take of its engine's rate."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One way to the engine: its rate in each round, and the CPU-ms of the engine's process for one unit of work."""

    name: str
    rates: list[float]
    cpu_ms: list[float] = []


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds that took turns: the bare engine first, then each of `through`, and so on."""

    title: str
    unit: str
    """What is counted, as in `tokens/s`."""
    bare: Side
    through: list[Side]
    judged: str = ""
    """The side that the bar holds; empty judges none."""
    note: str = ""

    def added_percent(self, side: Side) -> float:
        """Say how much longer the same work takes by `side`: the median over rounds, each beside its own bare one."""
        pairs = zip(self.bare.rates, side.rates, strict=True)
        return (median(bare / rate for bare, rate in pairs) - 1) * 100

    def check(self) -> Check | None:
        """Hold the judged side to the bar."""
        side = next((side for side in self.through if side.name == self.judged), None)
        if side is None:
            return None
        added = self.added_percent(side)
        return Check(
            name=self.title,
            asked=f"<= {MOST_ADDED_PERCENT:g}% added",
            measured=f"{added:.1f}%",
            passed=added <= MOST_ADDED_PERCENT,
        )


def render(comparisons: Sequence[Comparison]) -> str:
    """Write one line a side."""
    rows = [["", "", "median", "added", "CPU-ms each", "asked", ""]]
    for comparison in comparisons:
        check = comparison.check()
        for side in (comparison.bare, *comparison.through):
            bare = side is comparison.bare
            judged = check is not None and side.name == comparison.judged
            rows.append(
                [
                    f"{comparison.title}, {comparison.unit}" if bare else "",
                    side.name,
                    f"{median(side.rates):,.4g}",
                    "" if bare else f"{comparison.added_percent(side):+.1f}%",
                    f"{median(side.cpu_ms):.3f}" if side.cpu_ms else "-",
                    check.asked if check is not None and judged else "",
                    ("pass" if check.passed else "FAIL") if check is not None and judged else "",
                ]
            )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    left = (0, 1, 5, 6)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
