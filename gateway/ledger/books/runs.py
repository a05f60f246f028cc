"""What verifications found, kept: the last, those of 90 days, and the verifications that somebody waits for."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, get_args
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import Row, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.money import books_job, books_run
from gateway.errors import NotFound
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.books.figures import BooksReport
from gateway.ledger.transaction import transaction

Trigger = Literal["schedule", "dashboard", "api", "command"]
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)

LOST_AFTER = timedelta(seconds=60)
"""A verification that says nothing for so long died with its settler, and is begun again."""

_Row = Row[*tuple[Any, ...]]

_DAYS = text("""
select (at at time zone 'UTC')::date as day, count(*) as runs, count(*) filter (where not green) as red,
  bool_or(complete) as complete, (array_agg(id order by green, at desc))[1] as run_id
from books_run where at >= :since group by 1 order by 1
""")


class BooksRun(msgspec.Struct, frozen=True, kw_only=True):
    """A verification that was done."""

    id: UUID
    at: datetime
    took_ms: int
    green: bool
    complete: bool
    """Whether every row was gone through, or only the latest beside the sums of all."""
    trigger: str
    report: BooksReport


class BooksDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day (UTC) in the calendar: how many verifications, how many of them red, and the one to look at."""

    day: date
    runs: int
    red: int
    complete: bool
    run_id: UUID


class BooksJob(msgspec.Struct, frozen=True, kw_only=True):
    """A verification that somebody asked for."""

    id: UUID
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    run_id: UUID | None
    steps_done: int
    steps_in_all: int
    trigger: str
    actor: str
    error: str


class BooksRuns:
    """Keeps and shows verifications. Every method raises Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def keep(self, report: BooksReport, trigger: Trigger, took_ms: int) -> BooksRun:
        """Write down a verification; where green turned red, or back, that is to be told."""
        async with transaction(self._engine) as connection:
            await connection.execute(text("select pg_advisory_xact_lock(hashtext('books_run'))"))
            before = select(books_run.c.green).order_by(books_run.c.at.desc()).limit(1)
            was_green = (await connection.execute(before)).scalar_one_or_none()
            turned = report.holds != (True if was_green is None else was_green)
            values = {
                "id": uuid4(),
                "at": report.checked_at,
                "took_ms": took_ms,
                "green": report.holds,
                "complete": report.rows_since is None,
                "trigger": trigger,
                "report": msgspec.to_builtins(report),
                "alert_due_at": func.now() if turned else None,
            }
            row = (await connection.execute(insert(books_run).values(values).returning(books_run))).one()
            return _run(row)

    async def latest(self) -> BooksRun | None:
        """Show the last verification; None before the first."""
        async with transaction(self._engine) as connection:
            wanted = select(books_run).order_by(books_run.c.at.desc()).limit(1)
            row = (await connection.execute(wanted)).one_or_none()
            return None if row is None else _run(row)

    async def complete_at(self) -> datetime | None:
        """Say when all rows were last gone through."""
        async with transaction(self._engine) as connection:
            wanted = select(func.max(books_run.c.at)).where(books_run.c.complete)
            found: datetime | None = (await connection.execute(wanted)).scalar_one()
            return found

    async def scheduled_at(self) -> datetime | None:
        """Say when the schedule last verified."""
        async with transaction(self._engine) as connection:
            wanted = select(func.max(books_run.c.at)).where(books_run.c.trigger == "schedule")
            found: datetime | None = (await connection.execute(wanted)).scalar_one()
            return found

    async def show(self, run_id: UUID) -> BooksRun:
        """Show a verification. Raises NotFound."""
        async with transaction(self._engine) as connection:
            row = (await connection.execute(select(books_run).where(books_run.c.id == run_id))).one_or_none()
            if row is None:
                raise NotFound("There is no such verification, or it is kept no longer.")
            return _run(row)

    async def calendar(self, since: datetime) -> Sequence[BooksDay]:
        """Give the days with a verification, from `since` on."""
        async with transaction(self._engine) as connection:
            rows = (await connection.execute(_DAYS, {"since": since})).mappings()
            return [BooksDay(**row) for row in rows]

    async def ask(self, trigger: Trigger, by: Actor) -> BooksJob:
        """Ask for a verification of all rows; the one that is waited for already, where there is one."""
        async with transaction(self._engine) as connection:
            await connection.execute(text("select pg_advisory_xact_lock(hashtext('books_job'))"))
            open_now = select(books_job).where(books_job.c.finished_at.is_(None)).limit(1)
            row = (await connection.execute(open_now)).one_or_none()
            if row is None:
                values = {"id": uuid4(), "trigger": trigger, "actor": by.name}
                row = (await connection.execute(insert(books_job).values(values).returning(books_job))).one()
                action = Action(name="books.verify", object_kind="books", object_id=str(row.id))
                await write_audit(connection, by, action)
            return _job(row)

    async def job(self, job_id: UUID) -> BooksJob:
        """Show how far a verification is. Raises NotFound."""
        async with transaction(self._engine) as connection:
            row = (await connection.execute(select(books_job).where(books_job.c.id == job_id))).one_or_none()
            if row is None:
                raise NotFound("There is no such verification.")
            return _job(row)

    async def waiting(self) -> BooksJob | None:
        """Give the verification that somebody waits for and nobody does."""
        async with transaction(self._engine) as connection:
            return await _waiting(connection)

    async def progress(self, job_id: UUID, done: int, in_all: int) -> None:
        """Write down how far a verification is."""
        values = {
            "started_at": func.coalesce(books_job.c.started_at, func.now()),
            "beat_at": func.now(),
            "steps_done": done,
            "steps_in_all": in_all,
        }
        async with transaction(self._engine) as connection:
            await connection.execute(update(books_job).where(books_job.c.id == job_id).values(values))

    async def finish(self, job_id: UUID, run_id: UUID | None, error: str = "") -> None:
        """Write down that a verification is over."""
        values = {"finished_at": func.now(), "run_id": run_id, "error": error}
        async with transaction(self._engine) as connection:
            await connection.execute(update(books_job).where(books_job.c.id == job_id).values(values))


async def _waiting(connection: AsyncConnection) -> BooksJob | None:
    idle = func.coalesce(books_job.c.beat_at, text("'-infinity'::timestamptz")) < func.now() - LOST_AFTER
    wanted = select(books_job).where(books_job.c.finished_at.is_(None), idle).order_by(books_job.c.asked_at).limit(1)
    row = (await connection.execute(wanted)).one_or_none()
    return None if row is None else _job(row)


def _run(row: _Row) -> BooksRun:
    return BooksRun(
        id=row.id,
        at=row.at,
        took_ms=row.took_ms,
        green=row.green,
        complete=row.complete,
        trigger=row.trigger,
        report=msgspec.convert(row.report, BooksReport),
    )


def _job(row: _Row) -> BooksJob:
    shown = {name: getattr(row, name) for name in BooksJob.__struct_fields__}
    return BooksJob(**shown)
