"""What was spent over a page's period, by model, as a chart with its sentence."""

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.site.charts import Chart, Line
from gateway.admin.site.figures import usd
from gateway.admin.site.period import Period
from gateway.reports.figures import Figures
from gateway.reports.scope import Scope, add_up
from gateway.reports.series import Step


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A chart, and what it says in words."""

    chart: Chart
    sentence: str


async def spend_chart(engine: AsyncEngine, period: Period, scope: Scope) -> Drawn:
    """Draw what was charged, the five largest models apart."""
    step: Step = "day" if period.is_daily else "hour"
    series = await Figures(engine).series(period.range, scope, step=step, zone_name=period.zone_name, by="model")
    lines = [
        Line(
            label=line.label,
            values=[sums.charge_nanos for sums in line.sums],
            colour=0 if line.value is None else at,
            unit="usd",
        )
        for at, line in enumerate(series.lines, 1)
    ] or [Line(label="Spend", values=[0 for _ in series.at], unit="usd")]
    total = add_up(series.total).charge_nanos
    most = max(series.lines, key=lambda line: sum([sums.charge_nanos for sums in line.sums]), default=None)
    title = period.title
    span = f"the {title[0].lower()}{title[1:]}" if title.startswith("Last") else title
    words = f"{usd(total)} in {span}" if total else "Nothing was charged in this range"
    if most is not None and total and len(series.lines) > 1:
        words += f", most of it {most.label}"
    chart = Chart(
        at=series.at,
        series=lines,
        zone_name=period.zone_name,
        unit="usd",
        shape="stack",
        daily=period.is_daily,
        selects=True,
    )
    return Drawn(chart=chart, sentence=f"{words}.")
