"""Figures of requests: totals, lines over time, tables, the largest changes. Read from rollups in one snapshot each."""

from typing import get_args

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.reading import PAGE_TIMEOUT_MS
from gateway.reports.asking import closed_through, groups, page_session, total
from gateway.reports.compose import SPENT, Statement, grouped
from gateway.reports.movers import Mover, MoverKind, movers_of
from gateway.reports.pieces import pieces
from gateway.reports.ranges import Range
from gateway.reports.scope import EVERYTHING, Dimension, Group, Order, Question, Scope, Sums, add_up
from gateway.reports.series import Series, Step, series_of

TOP = 5


class FiguresTable(msgspec.Struct, frozen=True, kw_only=True):
    """Groups in their order, and the sums of the whole range: also of the groups that are not among the rows."""

    rows: tuple[Group, ...]
    total: Sums
    is_whole: bool
    """Whether no group is missing."""


class Figures:
    """Reads figures. Each call raises TookTooLong past a second, and Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine, *, timeout_ms: int = PAGE_TIMEOUT_MS) -> None:
        self._engine = engine
        self._timeout_ms = timeout_ms

    async def totals(self, during: Range, scope: Scope = EVERYTHING) -> Sums:
        """Give the sums of a range."""
        async with page_session(self._engine, self._timeout_ms) as session:
            return await total(session, Question(range=during, scope=scope))

    async def compared(self, during: Range, before: Range, scope: Scope = EVERYTHING) -> tuple[Sums, Sums]:
        """Give the sums of a range and of an earlier one, in one snapshot."""
        async with page_session(self._engine, self._timeout_ms) as session:
            now = await total(session, Question(range=during, scope=scope))
            return now, await total(session, Question(range=before, scope=scope))

    async def groups(self, question: Question) -> list[Group]:
        """Give the groups of any question."""
        async with page_session(self._engine, self._timeout_ms) as session:
            return await groups(session, question)

    async def series(
        self,
        during: Range,
        scope: Scope = EVERYTHING,
        *,
        step: Step = "hour",
        zone_name: str = "UTC",
        by: Dimension | None = None,
        top: int = TOP,
    ) -> Series:
        """Give the sums of each hour or day; with `by`, also those of the groups with the largest charge.

        Lines are drawn of requests and money: units and latencies are left out.
        """
        async with page_session(self._engine, self._timeout_ms) as session:
            asked = Question(
                range=during, scope=scope, group_by=(step,), zone_name=zone_name, units=False, latencies=False
            )
            if by is None:
                return series_of(asked, step, await groups(session, asked), None, ())
            largest = await groups(
                session,
                Question(
                    range=during,
                    scope=scope,
                    group_by=(by,),
                    units=False,
                    latencies=False,
                    order="-charge",
                    limit=top,
                ),
            )
            values = tuple(value for each in largest if (value := each.value(by)) is not None)
            split = msgspec.structs.replace(asked, group_by=(step, by), among=(by, values))
            return series_of(asked, step, await groups(session, split), by, largest)

    async def table(
        self,
        during: Range,
        scope: Scope = EVERYTHING,
        *,
        by: Dimension,
        order: Order = "-charge",
        limit: int = 100,
        units: bool = False,
    ) -> FiguresTable:
        """Give the sums of each group, the largest first, with the whole range's sums for the footer."""
        asked = Question(range=during, scope=scope, group_by=(by,), order=order, units=units)
        async with page_session(self._engine, self._timeout_ms) as session:
            found = await groups(session, msgspec.structs.replace(asked, limit=limit + 1))
            is_whole = len(found) <= limit
            asked_in_all = Question(range=during, scope=scope, units=units)
            footer = add_up([each.sums for each in found]) if is_whole else await total(session, asked_in_all)
        return FiguresTable(rows=tuple(found[:limit]), total=footer, is_whole=is_whole)

    async def charge_lines(
        self, during: Range, *, by: Dimension, step: Step = "hour", zone_name: str = "UTC"
    ) -> dict[int | str, list[int]]:
        """Give what was charged to each group in each hour or day that has requests: many groups, and nothing else."""
        asked = Question(range=during, group_by=(step, by), zone_name=zone_name, units=False, latencies=False)
        async with page_session(self._engine, self._timeout_ms) as session:
            statement = Statement()
            each = grouped(asked, pieces(asked, await closed_through(session)), statement, SPENT)
            # A row for each group, not for each of its hours: they are tens of thousands.
            rows = await session.fetch(
                f"""select {by} as value, array_agg((extract(epoch from {step}) / 3600)::int) as hours,
                  array_agg(charge_nanos) as charges from ({each}) g group by 1""",
                *statement.arguments,
            )
        places = {at: place for place, at in enumerate(sorted({hour for row in rows for hour in row["hours"]}))}
        lines: dict[int | str, list[int]] = {}
        for row in rows:
            line = lines[row["value"]] = [0] * len(places)
            for hour, charge in zip(row["hours"], row["charges"], strict=True):
                line[places[hour]] = charge
        return lines

    async def movers(
        self, during: Range, before: Range, scope: Scope = EVERYTHING, *, limit: int = 10
    ) -> tuple[Mover, ...]:
        """Give the keys and models whose charges changed most between two ranges, the largest change first."""
        async with page_session(self._engine, self._timeout_ms) as session:
            closed = await closed_through(session)
            found: list[Mover] = []
            for kind in get_args(MoverKind):
                found += await movers_of(session, closed, kind, (during, before), scope, limit)
        found.sort(key=lambda each: (-abs(each.charge_nanos - each.before_nanos), each.kind, each.id))
        return tuple(found[:limit])

    async def refunded(self, during: Range, scope: Scope = EVERYTHING) -> int:
        """Give the nanos that were refunded in a range, of any request; they do not lower `charge_nanos`."""
        async with page_session(self._engine, self._timeout_ms) as session:
            found = await session.fetchval(
                "select coalesce(sum(amount_nanos), 0)::bigint from refund where at >= $1 and at < $2 "
                "and ($3::bigint is null or account_id = $3) and ($4::bigint is null or api_key_id = $4)",
                during.from_at,
                during.to_at,
                scope.account_id,
                scope.key_id,
            )
        return int(found)
