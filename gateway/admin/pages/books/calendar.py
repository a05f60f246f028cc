"""Ninety days as squares: a column a week, a row a day of the week."""

from collections.abc import Sequence
from datetime import date, timedelta

import msgspec

from gateway.ledger.books.runs import BooksDay

DAYS = 90
STEP = 15


class Square(msgspec.Struct, frozen=True, kw_only=True):
    """A day."""

    x: int
    y: int
    tone: str
    """`good`, `bad`, or `off` where nothing was verified."""
    text: str
    href: str


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """The squares, and a sentence that says the same."""

    squares: Sequence[Square]
    width: int
    height: int
    sentence: str
    red: Sequence[Square]


def calendar_of(found: Sequence[BooksDay], today: date) -> Calendar:
    """Draw the last ninety days."""
    known = {day.day: day for day in found}
    first = today - timedelta(days=DAYS - 1)
    monday = first - timedelta(days=first.weekday())
    squares = [_square(first + timedelta(days=n), monday, known) for n in range(DAYS)]
    red = [square for square in squares if square.tone == "bad"]
    green = sum(square.tone == "good" for square in squares)
    sentence = (
        f"Of {DAYS} days, {green} were green, {len(red)} red, and on {DAYS - green - len(red)} nothing was verified."
    )
    width = max(square.x for square in squares) + STEP
    return Calendar(squares=squares, width=width, height=7 * STEP, sentence=sentence, red=red)


def _square(day: date, monday: date, known: dict[date, BooksDay]) -> Square:
    n, found = (day - monday).days, known.get(day)
    tone = "off" if found is None else "bad" if found.red else "good"
    if found is None:
        text = f"{day}: not verified"
    else:
        text = f"{day}: {'red' if found.red else 'green'}, {found.runs} verifications, {found.red} of them red"
    href = f"/admin/books/runs/{found.run_id}" if found else ""
    return Square(x=n // 7 * STEP, y=n % 7 * STEP, tone=tone, text=text, href=href)
