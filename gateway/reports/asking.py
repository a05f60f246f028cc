"""Asks Postgres a question about figures, in the session of a page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.states import OUTCOMES
from gateway.contract.tasks import TASKS
from gateway.contract.units import UNIT_NAMES, Units
from gateway.db.reading import PAGE_TIMEOUT_MS, reading
from gateway.reports.compose import Statement, compose, summed_of
from gateway.reports.latency import counts_of
from gateway.reports.pieces import pieces
from gateway.reports.scope import NO_UNITS, Dimension, Group, Question, Sums


@asynccontextmanager
async def page_session(
    engine: AsyncEngine, timeout_ms: int = PAGE_TIMEOUT_MS
) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Read for a page by asyncpg itself: one snapshot, nothing changes, no statement longer than its time."""
    async with reading(engine, timeout_ms=timeout_ms) as connection:
        driver = (await connection.get_raw_connection()).driver_connection
        assert driver is not None
        yield driver


async def groups(session: "asyncpg.Connection[asyncpg.Record]", question: Question) -> list[Group]:
    """Read the groups of a question in a session."""
    statement = Statement()
    text = compose(question, pieces(question, await closed_through(session)), statement)
    zone = ZoneInfo(question.zone_name)
    return [_group(record, question, zone) for record in await session.fetch(text, *statement.arguments)]


async def total(session: "asyncpg.Connection[asyncpg.Record]", question: Question) -> Sums:
    """Read the sums of a question without groups in a session."""
    (found,) = await groups(session, msgspec.structs.replace(question, group_by=(), order=None, limit=None))
    return found.sums


async def closed_through(session: "asyncpg.Connection[asyncpg.Record]") -> datetime:
    """Read through when hours are closed; long ago where none is yet."""
    closed: datetime = await session.fetchval("select greatest(closed_through, 'epoch') from rollup_state")
    return closed


def _group(record: asyncpg.Record, question: Question, zone: ZoneInfo) -> Group:
    known: dict[str, Any] = {}
    for dimension in question.group_by:
        value = record[dimension]
        if dimension in ("account", "key", "model"):
            known[f"{dimension}_id"] = value
            known[dimension] = record[f"{dimension}_name"]
        else:
            known[dimension] = _read(dimension, value, zone)
    if "key" in question.group_by:
        known["key_prefix"] = record["key_prefix"]
    units = Units(*(record[name] for name in UNIT_NAMES)) if question.units else NO_UNITS
    sums = {name: record[name] for name in summed_of(question)}
    counts = counts_of(int(record["latencies"])) if question.latencies else ()
    return Group(**known, sums=Sums(**sums, errors=record["errors"], latency_counts=counts, units=units))


def _read(dimension: Dimension, value: Any, zone: ZoneInfo) -> Any:
    if value is None:
        return None
    if dimension == "day":
        return value.astimezone(zone).date()
    if dimension == "task":
        return TASKS[value]
    return OUTCOMES[value] if dimension == "outcome" else value
