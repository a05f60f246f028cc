"""The usage report of the APIs, from the same figures as the pages."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors import InvalidRequest
from gateway.reports.asking import groups, page_session
from gateway.reports.query import UsageQuery
from gateway.reports.scope import Group, Question, add_up
from gateway.reports.table import UsageRow, UsageTable, measures_of

MAX_ROWS = 10_000
"""The most rows one report answers; a hundred keys and four models per day of a month fit."""

TIMEOUT_MS = 10_000
"""Programs wait longer than who looks at a page."""


class UsageReport:
    """Answers usage reports."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def read(self, query: UsageQuery) -> UsageTable:
        """Read one report. Raises InvalidRequest where it would have more than MAX_ROWS rows, and TookTooLong."""
        asked = Question(range=query.range, scope=query.scope, group_by=query.group_by, limit=MAX_ROWS + 1)
        async with page_session(self._engine, TIMEOUT_MS) as session:
            found = await groups(session, asked)
        if len(found) > MAX_ROWS:
            raise InvalidRequest(
                f"This report has more than {MAX_ROWS:,} rows; take a shorter range, or group by less.",
                code="report_too_long",
                param="group_by",
            )
        if not query.group_by and not found[0].sums.requests:
            found = []
        total = add_up([group.sums for group in found])
        return UsageTable(
            from_at=query.range.from_at,
            to_at=query.range.to_at,
            group_by=query.group_by,
            rows=[_row(query, group) for group in found],
            total=UsageRow(**measures_of(total, with_costs=query.with_costs)),
        )


def _row(query: UsageQuery, group: Group) -> UsageRow:
    named: dict[str, Any] = {
        "day": group.day,
        "hour": group.hour,
        "account_id": group.account_id,
        "account_name": group.account,
        "key_id": group.key_id,
        "key_name": group.key,
        "model": group.model,
        "task": group.task,
        "outcome": group.outcome,
        "route": group.route,
    }
    known = {name: value for name, value in named.items() if value is not None}
    return UsageRow(**known, **measures_of(group.sums, with_costs=query.with_costs))
