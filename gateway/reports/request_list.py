"""Requests page by page, the latest first: finished ones by their usage rows, and open ones."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.ids import request_id_of
from gateway.contract.states import OUTCOMES, REASONS, Outcome, Reason
from gateway.contract.tasks import TASKS, Task
from gateway.reports.asking import page_session
from gateway.reports.request_filter import Clauses, RequestFilter

PAGE = 50
MOST_NEW = 100
"""How many new requests are counted, at most."""

_COLUMNS = """u.id, u.created_at, u.finished_at, u.account_id, u.api_key_id, u.model_id, u.task, u.outcome, u.reason,
  u.queue_us, u.charge_nanos, u.cost_nanos, u.attempt, u.route"""


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A finished request, as lists show it."""

    id: str
    created_at: datetime
    finished_at: datetime
    account_id: int
    account: str
    key_id: int
    key: str
    model: str
    task: Task
    outcome: Outcome
    reason: Reason
    queue_us: int
    total_us: int
    """From its admission to its settlement, by the clock of Postgres."""
    charge_nanos: int
    refunded_nanos: int
    cost_nanos: int | None
    attempts: int
    route: str

    @property
    def margin_nanos(self) -> int | None:
        """What is left of the charge after the cost; None where nobody knows the cost."""
        return None if self.cost_nanos is None else self.charge_nanos - self.cost_nanos


class OpenRow(msgspec.Struct, frozen=True, kw_only=True):
    """An open request, as lists show it."""

    id: str
    created_at: datetime
    deadline_at: datetime
    account_id: int
    account: str
    key_id: int
    key: str
    model: str
    task: Task
    pool: str
    hold_nanos: int


class OpenNow(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests are open, and since when the oldest is."""

    count: int
    oldest_at: datetime | None
    hold_nanos: int


async def list_requests(engine: AsyncEngine, wanted: RequestFilter, *, limit: int = PAGE) -> list[RequestRow]:
    """Read one page of finished requests. Raises TookTooLong where a narrow filter looks through too long a range."""
    clauses = Clauses(wanted)
    most = clauses.put(limit, "int")
    if wanted.account_id is not None and wanted.key_id is None:
        keys = clauses.put(wanted.account_id, "bigint")
        chosen = f"""select p.* from (select id from api_key where account_id = {keys}) k cross join lateral (
            select {_COLUMNS} from usage u where u.api_key_id = k.id and {clauses} order by u.id desc limit {most}) p
          order by p.id desc limit {most}"""
    else:
        chosen = f"select {_COLUMNS} from usage u where {clauses} order by u.id desc limit {most}"
    query = f"""with u as materialized ({chosen})
      select u.*, a.name as account, coalesce(nullif(k.name, ''), k.prefix) as key, m.name as model,
        (select count(*) from attempt t where t.request_id = u.id and (t.upstream or t.name = '')) as tried,
        (select coalesce(sum(r.amount_nanos), 0)::bigint from refund r where r.request_id = u.id) as refunded
      from u left join account a on a.id = u.account_id left join api_key k on k.id = u.api_key_id
        left join model m on m.id = u.model_id
      order by u.id desc"""
    async with page_session(engine) as session:
        return [_row(record) for record in await session.fetch(query, *clauses.arguments)]


async def count_new(engine: AsyncEngine, wanted: RequestFilter, since: UUID) -> int:
    """Count the requests with later ids than one, up to MOST_NEW. Their ends, not their admissions, bring them in."""
    clauses = Clauses(msgspec.structs.replace(wanted, after=None))
    if wanted.account_id is not None:
        clauses.texts.append(f"u.account_id = {clauses.put(wanted.account_id, 'bigint')}")
    query = f"""select count(*) from (select from usage u where {clauses} and u.id > {clauses.put(since, "uuid")}
      limit {clauses.put(MOST_NEW, "int")}) found"""
    async with page_session(engine) as session:
        return int(await session.fetchval(query, *clauses.arguments))


async def list_open(
    engine: AsyncEngine,
    *,
    account_id: int | None = None,
    key_id: int | None = None,
    model_id: int | None = None,
    after: UUID | None = None,
    limit: int = PAGE,
) -> list[OpenRow]:
    """Read one page of open requests, the longest waiting first."""
    query = """select o.*, a.name as account, coalesce(nullif(k.name, ''), k.prefix) as key, m.name as model
      from open_request o left join account a on a.id = o.account_id left join api_key k on k.id = o.api_key_id
        left join model m on m.id = o.model_id
      where ($1::bigint is null or o.account_id = $1) and ($2::bigint is null or o.api_key_id = $2)
        and ($3::int is null or o.model_id = $3) and ($4::uuid is null or o.id > $4)
      order by o.id limit $5"""
    async with page_session(engine) as session:
        records = await session.fetch(query, account_id, key_id, model_id, after, limit)
    return [
        OpenRow(
            id=request_id_of(record["id"]),
            created_at=record["created_at"],
            deadline_at=record["deadline_at"],
            account_id=record["account_id"],
            account=record["account"] or "",
            key_id=record["api_key_id"],
            key=record["key"] or "",
            model=record["model"] or "",
            task=TASKS[record["task"]],
            pool=record["pool"],
            hold_nanos=record["hold_nanos"],
        )
        for record in records
    ]


async def open_now(engine: AsyncEngine, *, most: int = 10_000) -> OpenNow:
    """Count the open requests, up to `most`."""
    query = """select count(*) as count, min(created_at) as oldest_at, coalesce(sum(hold_nanos), 0)::bigint as hold
      from (select created_at, hold_nanos from open_request order by id limit $1) o"""
    async with page_session(engine) as session:
        record = await session.fetchrow(query, most + 1)
    assert record is not None
    return OpenNow(count=record["count"], oldest_at=record["oldest_at"], hold_nanos=record["hold"])


async def model_choices(engine: AsyncEngine) -> Sequence[tuple[int, str]]:
    """Read the numbers and names of all models, for a filter."""
    async with page_session(engine) as session:
        return [
            (record["id"], record["name"]) for record in await session.fetch("select id, name from model order by name")
        ]


def _row(record: asyncpg.Record) -> RequestRow:
    known: Any = dict(record)
    return RequestRow(
        id=request_id_of(known["id"]),
        created_at=known["created_at"],
        finished_at=known["finished_at"],
        account_id=known["account_id"],
        account=known["account"] or "",
        key_id=known["api_key_id"],
        key=known["key"] or "",
        model=known["model"] or "",
        task=TASKS[known["task"]],
        outcome=OUTCOMES[known["outcome"]],
        reason=REASONS[known["reason"]],
        queue_us=known["queue_us"],
        total_us=round((known["finished_at"] - known["created_at"]).total_seconds() * 1_000_000),
        charge_nanos=known["charge_nanos"],
        refunded_nanos=known["refunded"],
        cost_nanos=known["cost_nanos"],
        attempts=max(known["attempt"], known["tried"]),
        route=known["route"],
    )
