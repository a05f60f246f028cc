"""The usage report, read from rollups in one statement."""

from datetime import UTC
from importlib.resources import files
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.errors import InvalidRequest
from gateway.ledger.transaction import snapshot
from gateway.money import usd_text
from gateway.reports.query import UsageQuery
from gateway.reports.table import COLUMNS, MEASURES, UsageRow, UsageTable, add_up

MAX_ROWS = 10_000
"""The most rows one report answers; a hundred keys and four models per day of a month fit."""

_USAGE = (files("gateway.reports") / "usage.sql").read_text("utf-8")


class UsageReport:
    """Answers usage reports."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def read(self, query: UsageQuery) -> UsageTable:
        """Read one report. Raises InvalidRequest where it would have more than MAX_ROWS rows."""
        async with snapshot(self._engine) as connection:
            found = await connection.fetch(
                _USAGE,
                query.range.from_at,
                query.range.to_at,
                list(query.group_by),
                query.account_id,
                query.key_id,
                query.model,
                query.task,
                query.outcome,
                MAX_ROWS + 1,
            )
        if len(found) > MAX_ROWS:
            raise InvalidRequest(
                f"This report has more than {MAX_ROWS:,} rows; take a shorter range, or group by less.",
                code="report_too_long",
                param="group_by",
            )
        rows = [_row(query, record) for record in found]
        return UsageTable(
            from_at=query.range.from_at,
            to_at=query.range.to_at,
            group_by=query.group_by,
            rows=rows,
            total=add_up(rows),
        )


def _row(query: UsageQuery, record: asyncpg.Record) -> UsageRow:
    known: dict[str, Any] = {name: record[name] for name in MEASURES}
    known["charge_usd"] = usd_text(record["charge_nanos"])
    for dimension in query.group_by:
        for column in COLUMNS[dimension]:
            known[column] = _value(column, record[column])
    return UsageRow(**known)


def _value(column: str, value: Any) -> Any:
    if column == "day":
        return value.astimezone(UTC).date()
    if column == "task":
        return TASKS[value]
    if column == "outcome":
        return OUTCOMES[value]
    return value
