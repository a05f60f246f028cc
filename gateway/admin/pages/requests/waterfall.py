"""Where the time of a request went, as one drawing: each attempt is a row, each phase a segment, all on one scale.

Usage rows keep how long each phase of an attempt took, and not when it began: phases are drawn one after another, and
so are attempts. What is left between them and the end is labelled as unaccounted, and nothing is stretched to fill it.
"""

from collections.abc import Sequence

import msgspec

from gateway.admin.site.figures import ms
from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.ledger.steps import RatedStep
from gateway.reports.request_story import Story

LABELLED = 9.0
"""A segment of at least so many per cent of the width carries its words."""
MOST_TICKS = 6
EDGE = 90
"""From so many per cent on, the words of a tick would run over the edge on a phone."""
ROW_HEIGHT = 46
HEAD_HEIGHT = 26
_STEPS = (1, 2, 5)


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A phase of an attempt, or a time that no phase accounts for."""

    phase: str
    start_us: int
    us: int
    x: str
    """Where it begins, in per cent of the whole."""
    width: str
    is_labelled: bool

    @property
    def text(self) -> str:
        """What it is and how long."""
        return f"{self.phase} {ms(self.us / 1000)}"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the drawing."""

    y: int
    title: str
    note: str
    tone: str
    is_lost: bool
    """Whether another attempt won: it is charged to nobody."""
    segments: tuple[Segment, ...]
    cost_nanos: int | None = None
    is_attempt: bool = True

    @property
    def sum_us(self) -> int:
        """How long its phases took together."""
        return sum(one.us for one in self.segments if one.phase != "unaccounted")


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A mark of the scale."""

    x: str
    text: str
    is_last: bool
    """Whether its words stand left of it, where there is no room on the right."""


class Waterfall(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing of one request."""

    rows: tuple[Attempt, ...]
    ticks: tuple[Tick, ...]
    total_us: int
    unaccounted_us: int
    over_us: int
    """By how much the phases exceed the time that passed, where attempts ran side by side."""
    deadline_x: str = ""
    height: int = 0

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that are in the drawing, in their order."""
        drawn = {one.phase for row in self.rows for one in row.segments}
        return tuple(name for name in (*PHASE_NAMES, "running", "unaccounted") if name in drawn)


def draw(story: Story, *, running: bool = False) -> Waterfall:
    """Draw a request. Of an open one only how long it is known to be there; `running` says that a worker has it."""
    total = max(story.total_us, 1)
    rows = _open_row(total, running) if story.end is None else _rows(story, total)
    placed = tuple(msgspec.structs.replace(row, y=HEAD_HEIGHT + at * ROW_HEIGHT) for at, row in enumerate(rows))
    spent = sum(row.sum_us for row in placed)
    gaps = sum(one.us for row in placed for one in row.segments if one.phase == "unaccounted")
    deadline = ""
    if story.deadline_at is not None:
        share = (story.deadline_at - story.created_at).total_seconds() * 1_000_000 / total
        deadline = f"{share * 100:.3f}%" if share <= 1 else ""
    elif story.end is not None and story.end.reason == "deadline":
        deadline = "100%"
    return Waterfall(
        rows=placed,
        ticks=_ticks(total),
        total_us=total,
        unaccounted_us=gaps,
        over_us=max(spent - total, 0) if story.end else 0,
        deadline_x=deadline,
        height=HEAD_HEIGHT + len(placed) * ROW_HEIGHT + 4,
    )


def _open_row(total: int, running: bool) -> list[Attempt]:
    phase, words = ("running", "at a worker") if running else ("queue", "waiting")
    segment = _segment(phase, 0, total, total)
    note = "Its phases are known once it has ended." if running else "No worker has taken it yet."
    return [Attempt(y=0, title=f"Open: {words}", note=note, tone="info", is_lost=False, segments=(segment,))]


def _rows(story: Story, total: int) -> list[Attempt]:
    end = story.end
    assert end is not None
    attempts = [_step(number, rated) for number, rated in enumerate(story.steps, 1)]
    if not story.steps or not _holds_the_end(story):
        lost = end.attempt - 1 - len([one for one in story.steps if not one.step.name])
        note = f"attempt {end.attempt}" if end.attempt > 1 else ""
        if lost > 0:
            note += f"; what the {lost} before it took is not kept"
        who = f"{end.route or end.pool}{' · ' + end.worker if end.worker else ''}"
        title = f"{len(attempts) + 1} · {who}" if end.worker else "No worker ran it"
        tone = "good" if end.outcome == "succeeded" else "bad"
        own = end.cost_nanos if not story.steps else None
        attempts.append((Attempt(y=0, title=title, note=note, tone=tone, is_lost=False, segments=(), cost_nanos=own),
                         end.phases))  # fmt: skip
    return _laid_out(attempts, total)


def _holds_the_end(story: Story) -> bool:
    """Say whether the steps tell the last attempt too: those of a workflow do, and the calls of its upstreams."""
    last = story.steps[-1].step
    worker = story.end.worker if story.end else ""
    return bool(last.name) and (not last.upstream or last.worker == worker)


def _step(number: int, rated: RatedStep) -> tuple[Attempt, Phases]:
    step = rated.step
    won = step.outcome == "succeeded"
    kind = "upstream " if step.upstream else "step " if step.name else ""
    who = " · ".join(part for part in (kind + (step.name or step.pool), step.model, step.worker) if part)
    note = step.outcome if won else f"{step.outcome}: {step.detail or step.reason.replace('_', ' ')}"
    row = Attempt(
        y=0,
        title=f"{number} · {who}",
        note=note,
        tone="good" if won else "bad",
        is_lost=not won,
        segments=(),
        cost_nanos=rated.cost_nanos,
    )
    return row, step.phases


def _laid_out(attempts: Sequence[tuple[Attempt, Phases]], total: int) -> list[Attempt]:
    """Put attempts one after another; where they take longer together than the whole, side by side from the begin."""
    lengths = [_sum(phases) for _, phases in attempts]
    one_by_one = sum(lengths) <= total
    rows, at = [], 0
    for (row, phases), length in zip(attempts, lengths, strict=True):
        begin = at if one_by_one else 0
        segments = _segments(phases, begin, total)
        at += length
        if one_by_one and row is attempts[-1][0] and at < total:
            segments = (*segments, _segment("unaccounted", at, total - at, total))
        rows.append(msgspec.structs.replace(row, segments=segments))
    return rows


def _segments(phases: Phases, begin: int, total: int) -> tuple[Segment, ...]:
    made = []
    for name in PHASE_NAMES:
        us = getattr(phases, f"{name}_us")
        if us > 0:
            made.append(_segment(name, begin, us, total))
            begin += us
    return tuple(made)


def _segment(phase: str, start_us: int, us: int, total: int) -> Segment:
    shown = max(min(us, total - start_us), 0)
    width = shown * 100 / total
    return Segment(
        phase=phase,
        start_us=start_us,
        us=us,
        x=f"{min(start_us * 100 / total, 100):.3f}%",
        width=f"{width:.3f}%",
        is_labelled=width >= LABELLED,
    )


def _sum(phases: Phases) -> int:
    return sum(getattr(phases, f"{name}_us") for name in PHASE_NAMES)


def _ticks(total: int) -> tuple[Tick, ...]:
    """Mark round times, at most so many that their words stand apart."""
    power = 0
    while True:
        for factor in _STEPS:
            step = factor * 10**power
            if total <= step * MOST_TICKS:
                times = range(0, total + 1, step)
                return tuple(
                    Tick(x=f"{at * 100 / total:.3f}%", text=ms(at / 1000), is_last=at * 100 > total * EDGE)
                    for at in times
                )
        power += 1
