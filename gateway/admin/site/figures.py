"""How pages write figures: money from nanos without floats, counts, durations, sizes, instants."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from jinja2.utils import htmlsafe_json_dumps

from gateway.money import decimal_text, usd_text

NANOS_PER_CENT = 10**7
NOTHING = "\u2013"
_UNITS_OF_TIME = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def usd(nanos: int | None) -> str:
    """Write an amount for reading: to the cent, or what is smaller than a cent to three digits that count."""
    if nanos is None:
        return NOTHING
    sign, left = ("-" if nanos < 0 else ""), abs(nanos)
    if left == 0 or left >= NANOS_PER_CENT:
        cents = _half_even(left, NANOS_PER_CENT)
        return f"{sign}${cents // 100:,}.{cents % 100:02}"
    step = 10 ** max(len(str(left)) - 3, 0)
    return f"{sign}${usd_text(_half_even(left, step) * step)}"


def usd_exact(nanos: int | None) -> str:
    """Write an amount to the last nano."""
    if nanos is None:
        return NOTHING
    whole, _, rest = usd_text(abs(nanos)).partition(".")
    return f"{'-' if nanos < 0 else ''}${int(whole):,}.{rest.ljust(2, '0')}"


def count(number: int | None) -> str:
    """Write a whole number with its thousands."""
    return NOTHING if number is None else f"{number:,}"


def short(number: int | None) -> str:
    """Write a whole number for tiles and axes: 1,204, 48.2k, 3.1M."""
    if number is None:
        return NOTHING
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**4, "k")):
        if abs(number) >= size:
            unit = 1000 if letter == "k" else size
            return f"{number / unit:.1f}{letter}"
    return f"{number:,}"


def share(part: int | None, whole: int | None) -> str:
    """Write a part of a whole in percent."""
    if part is None or not whole:
        return NOTHING
    return f"{part * 100 / whole:.1f}%"


def percent(ppm: int) -> str:
    """Write millionths as percent, exactly: 12.5%."""
    return f"{decimal_text(ppm, 4)}%"


def change(new: int | None, old: int | None) -> str:
    """Write by how much a figure changed, in percent with its sign; "new" where there was nothing before."""
    if new is None or old is None or (new == 0 and old == 0):
        return NOTHING
    if old == 0:
        return "new"
    percent = (new - old) * 100 / abs(old)
    return f"{percent:+.0f}%" if abs(percent) >= 10 else f"{percent:+.1f}%"


def ms(value: float | None) -> str:
    """Write milliseconds: 12 ms, 1.24 s, 3 min 5 s."""
    if value is None:
        return NOTHING
    if value < 1000:
        return f"{value:.0f} ms" if value >= 10 or value == int(value) else f"{value:.1f} ms"
    return f"{value / 1000:.2f} s" if value < 60_000 else duration(value / 1000)


def duration(seconds: float | None) -> str:
    """Write seconds in the two largest units: 45 s, 3 min 5 s, 2 d 4 h."""
    if seconds is None:
        return NOTHING
    left = round(abs(seconds))
    parts: list[str] = []
    for size, unit in _UNITS_OF_TIME:
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
            left %= size
    return ("-" if seconds < 0 else "") + " ".join(parts[:2])


def size(number: int | None) -> str:
    """Write bytes: 512 B, 1.5 MiB."""
    if number is None:
        return NOTHING
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if number >= 1024**power:
            return f"{number / 1024**power:.1f} {unit}"
    return f"{number} B"


def when(at: datetime | None, zone: ZoneInfo | str = "UTC") -> str:
    """Write an instant to the second, in a zone."""
    if at is None:
        return NOTHING
    local = at.astimezone(ZoneInfo(zone) if isinstance(zone, str) else zone)
    return f"{local:%Y-%m-%d %H:%M:%S}"


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """Write how long ago an instant was, or how long until it."""
    if at is None:
        return "never"
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    words = duration(abs(seconds)).split(" ")
    near = " ".join(words[:2])
    return f"{near} ago" if seconds > 0 else f"in {near}"


def change_tone(text: str, better: str = "up") -> str:
    """Say whether a change is good or bad news, by its sign and by which way is better."""
    if text[:1] not in {"+", "-"} or better == "neither" or text in {"+0.0%", "-0.0%"}:
        return "off"
    return "good" if (text[0] == "+") is (better == "up") else "bad"


def spark(values: Sequence[int], beside: Sequence[int] | None, width: int, height: int) -> str:
    """Write the points of a small line, on a common scale with the line beside it."""
    top = max([1, *values, *(beside or ())])
    step = width / max(len(values) - 1, 1)
    return " ".join(f"{at * step:.1f},{height - 2 - value / top * (height - 4):.1f}" for at, value in enumerate(values))


def script_json(value: Any) -> str:
    """Write data into a `<script type="application/json">`: no text in it can end the element."""
    return htmlsafe_json_dumps(value, separators=(",", ":"), default=str)


def _half_even(whole: int, step: int) -> int:
    quotient, rest = divmod(whole, step)
    return quotient + (rest * 2 > step or (rest * 2 == step and quotient & 1))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "usd": usd,
    "usd_exact": usd_exact,
    "count": count,
    "short": short,
    "share": share,
    "percent": percent,
    "change": change,
    "ms": ms,
    "duration": duration,
    "size": size,
    "when": when,
    "ago": ago,
    "change_tone": change_tone,
    "spark": spark,
    "script_json": script_json,
}
