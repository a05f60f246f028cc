"""What a chart shows, made ready for the browser: figures as whole numbers, and beside each what it reads as."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

import msgspec

from gateway.admin.site.figures import count, ms, usd

Unit = Literal["usd", "count", "ms"]
Shape = Literal["line", "bars", "stack"]
COLOURS = 6
"""How many lines have a colour of their own; dotted and "Other" lines are grey."""

_WRITERS: dict[str, Callable[[Any], str]] = {"usd": usd, "count": count, "ms": ms}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a chart: a figure for each of its times, None where there is none."""

    label: str
    values: Sequence[int | None]
    colour: int = 1
    """1 to 6 as in the stylesheet; 0 is grey."""
    dotted: bool = False
    unit: Unit = "count"

    @property
    def texts(self) -> list[str]:
        """What each figure reads as."""
        return [_WRITERS[self.unit](value) for value in self.values]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over the times of a period."""

    at: Sequence[datetime]
    series: Sequence[Line]
    zone_name: str
    unit: Unit = "count"
    shape: Shape = "line"
    daily: bool = False
    selects: bool = False
    """Whether dragging over it leads to the range that was chosen."""

    @property
    def labels(self) -> list[str]:
        """What each time reads as."""
        local = [at.astimezone(ZoneInfo(self.zone_name)) for at in self.at]
        return [f"{at:%Y-%m-%d}" if self.daily else f"{at:%Y-%m-%d %H:%M}" for at in local]

    @property
    def rows(self) -> list[tuple[str, tuple[str, ...]]]:
        """The chart as a table: each time, and what each line says there."""
        columns = [line.texts for line in self.series]
        return [(at, tuple(texts[place] for texts in columns)) for place, at in enumerate(self.labels)]

    @property
    def data(self) -> dict[str, Any]:
        """What app.js draws."""
        return {
            "x": [int(at.timestamp()) for at in self.at],
            "labels": self.labels,
            "zone": self.zone_name,
            "unit": self.unit,
            "shape": self.shape,
            "daily": self.daily,
            "selects": self.selects,
            "series": [
                {
                    "label": line.label,
                    "values": list(line.values),
                    "texts": line.texts,
                    "colour": line.colour,
                    "dotted": line.dotted,
                }
                for line in self.series
            ],
        }
