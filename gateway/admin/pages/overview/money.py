"""The tiles, the chart and the movers of the overview, from the figures of a range and of the one before."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from gateway.admin.site.charts import Chart, Line
from gateway.admin.site.figures import NOTHING, change, share, short, usd
from gateway.admin.site.period import Period
from gateway.reports.figures import Figures
from gateway.reports.movers import Mover
from gateway.reports.ranges import Range
from gateway.reports.scope import Dimension, Sums, add_up
from gateway.reports.series import Series, Step


class Both(msgspec.Struct, frozen=True, kw_only=True):
    """A range and the one before, hour by hour or day by day."""

    now: Series
    before: Series

    @property
    def sums(self) -> Sums:
        """The sums of the range."""
        return add_up(self.now.total)

    @property
    def sums_before(self) -> Sums:
        """The sums of the range before."""
        return add_up(self.before.total)


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its change, its line, and the line of the range before."""

    label: str
    figure: str
    change: str
    better: str
    href: str
    values: Sequence[int]
    before: Sequence[int]
    note: str


async def read_both(figures: Figures, period: Period) -> Both:
    """Read spend by model over the range, and the sums of the range before."""
    step: Step = "day" if period.is_daily else "hour"

    async def read(during: Range, by: Dimension | None) -> Series:
        return await figures.series(during, step=step, zone_name=period.zone_name, by=by)

    now, before = await asyncio.gather(read(period.range, "model"), read(period.before, None))
    return Both(now=now, before=before)


def tiles(both: Both, period: Period) -> list[Tile]:
    """Make the four tiles."""
    now, before = both.sums, both.sums_before

    def note(text: str) -> str:
        return f"{text} {period.before_title}" if before.requests else ""

    def changed(new: int | None, old: int | None) -> str:
        return change(new, old) if before.requests else ""

    def lines(of: Callable[[Sums], int]) -> dict[str, list[int]]:
        return {"values": [of(each) for each in both.now.total], "before": [of(each) for each in both.before.total]}

    rate, rate_before = _permyriad(now), _permyriad(before)
    return [
        Tile(label="Spend", figure=usd(now.charge_nanos), change=changed(now.charge_nanos, before.charge_nanos),
             better="up", href="/admin/models", note=note(usd(before.charge_nanos)),
             **lines(lambda each: each.charge_nanos)),
        Tile(label="Requests", figure=short(now.requests), change=changed(now.requests, before.requests),
             better="up", href="/admin/requests", note=note(short(before.requests)),
             **lines(lambda each: each.requests)),
        Tile(label="Errors", figure=share(now.errors, now.requests), change=changed(rate, rate_before),
             better="down", href="/admin/requests?outcome=failed",
             note=note(share(before.errors, before.requests)), **lines(lambda each: each.errors)),
        Tile(label="Margin", figure=usd(now.margin_nanos), change=changed(now.margin_nanos, before.margin_nanos),
             better="up", href="/admin/models?sort=margin", note=_margin_note(now),
             **lines(lambda each: max(each.margin_nanos, 0))),
    ]  # fmt: skip


def spend_chart(both: Both, period: Period) -> Chart:
    """Draw spend: the five largest models and all others stacked, last week dotted."""
    lines = [
        Line(
            label=line.label,
            values=[each.charge_nanos for each in line.sums],
            colour=0 if line.value is None else at,
            unit="usd",
        )
        for at, line in enumerate(both.now.lines, start=1)
    ]
    last = [each.charge_nanos for each in both.before.total][: len(both.now.at)]
    padded = [*last, *([None] * (len(both.now.at) - len(last)))]
    dotted = Line(label=period.before_title.capitalize(), values=padded, colour=0, dotted=True, unit="usd")
    return Chart(
        at=both.now.at,
        series=[*lines, dotted],
        zone_name=period.zone_name,
        unit="usd",
        shape="stack",
        daily=period.is_daily,
        selects=True,
    )


def spend_sentence(both: Both, period: Period) -> str:
    """Say in words what the chart shows."""
    now, before = both.sums, both.sums_before
    title = period.title
    said = f"{usd(now.charge_nanos)} in {'the l' + title[1:] if title.startswith('Last') else title}"
    largest = max(both.now.lines, key=lambda line: add_up(line.sums).charge_nanos, default=None)
    if largest is not None and now.charge_nanos:
        part = add_up(largest.sums).charge_nanos
        said += f", {share(part, now.charge_nanos)} of it {largest.label}"
    return f"{said}; {period.before_title} it was {usd(before.charge_nanos)}."


def mover_rows(movers: Sequence[Mover]) -> list[tuple[Mover, str, str, str]]:
    """Write each mover's address, its difference, and its change."""
    rows = []
    for mover in movers:
        moved = mover.charge_nanos - mover.before_nanos
        path = f"/admin/keys/{mover.id}" if mover.kind == "key" else f"/admin/models/{mover.label}"
        changed = change(mover.charge_nanos, mover.before_nanos)
        rows.append((mover, path, f"{'+' if moved > 0 else ''}{usd(moved)}", changed))
    return rows


def _permyriad(sums: Sums) -> int | None:
    return sums.errors * 10_000 // sums.requests if sums.requests else None


def _margin_note(sums: Sums) -> str:
    known = f"{share(sums.margin_nanos, sums.charge_nanos)} of spend" if sums.charge_nanos else NOTHING
    return f"{known}; {short(sums.uncosted)} requests without a known cost" if sums.uncosted else known
