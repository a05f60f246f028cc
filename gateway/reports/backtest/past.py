"""The usage that a draft is about, read chunk by chunk, and the sums of it."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.catalog.codec import read_components, read_outcome
from gateway.catalog.entries import MAX_DEADLINE_S
from gateway.ledger.transaction import snapshot
from gateway.pricing.backtest import DiscountDraft, Draft, PriceDraft, Sums
from gateway.reports.backtest.statement import Rule, Rules, chunk_statement

FIRST_ROWS = 20_000
MOST_ROWS = 200_000
LEAST_ROWS = 1_000
AIM_S = 0.3
"""How long a chunk should take: others get their turn between two of them."""
MOST_S = 5.0
"""A chunk that takes longer is given up by Postgres, and tried again in halves."""

_LONGEST_OPEN = timedelta(seconds=MAX_DEADLINE_S) + timedelta(days=1)

Source = Literal["model_id", "api_key_id"]
"""A column by which usage lies in the order of ids: `usage_model_id_id_idx`, `usage_api_key_id_id_idx`."""

SumsByKey = dict[tuple[int, int], Sums]
"""By account and key."""
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Progress = Callable[[int], Awaitable[bool]]
"""Told how many rows are done; answers whether to go on."""


class Stopped(Exception):
    """Somebody called the backtest off."""


class TooSlow(Exception):
    """Even a small chunk takes longer than a chunk may."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be rated again."""

    source: Source
    values: tuple[int, ...]
    """Of that column, one after the other."""
    accounts: tuple[int, ...]
    only: bool
    """Whether `accounts` are those that it is about; else they are left out."""
    rules: Rules
    from_at: datetime
    to_at: datetime
    rows: int
    """About how many, by the hourly sums."""


class _Span(msgspec.Struct):
    """Where the reading of one value stands."""

    value: int
    after: UUID
    last: UUID


async def look(engine: AsyncEngine, draft: Draft, from_at: datetime, to_at: datetime) -> Past:
    """Find out which usage a draft is about, and at what price that was sold."""
    async with snapshot(engine) as connection:
        if isinstance(draft, PriceDraft):
            return await _of_price(connection, draft, from_at, to_at)
        return await _of_discount(connection, draft, from_at, to_at)


async def rate(engine: AsyncEngine, past: Past, progress: Progress) -> SumsByKey:
    """Rate all of it again. Raises Stopped, TooSlow, and Unavailable while Postgres is away."""
    condition = "account_id = any($6::bigint[])" if past.only else "account_id <> all($6::bigint[])"
    text, arguments = chunk_statement(past.source, past.rules, condition)
    found: SumsByKey = {}
    done, size = 0, FIRST_ROWS
    for span in _spans(past):
        while span.after < span.last:
            began = time.monotonic()
            end, rows = await _chunk(engine, past, span, size, text, arguments)
            took_s = time.monotonic() - began
            if end is None:
                if size <= LEAST_ROWS:
                    raise TooSlow
                size = max(size // 4, LEAST_ROWS)
                continue
            span.after = end
            done += _add(found, rows)
            size = min(size * 2, MOST_ROWS) if took_s < AIM_S else max(size // 2, LEAST_ROWS) if took_s > 1 else size
            if not await progress(done):
                raise Stopped
    return found


def _spans(past: Past) -> Iterator[_Span]:
    """Give each value its ids: those of requests that can have finished in the range."""
    first, last = _id_at(past.from_at - _LONGEST_OPEN), _id_at(past.to_at + timedelta(minutes=1))
    return (_Span(value, first, last) for value in past.values)


def _id_at(at: datetime) -> UUID:
    """Give the least id that a request admitted at an instant can have."""
    return UUID(int=max(int(at.timestamp() * 1000), 0) << 80)


async def _chunk(
    engine: AsyncEngine, past: Past, span: _Span, size: int, text: str, arguments: list[object]
) -> tuple[UUID | None, list[asyncpg.Record]]:
    """Rate the next rows of a span; answers the last id of them, None where Postgres took too long."""
    ends = (
        f"select id from usage where {past.source} = $1 and id > $2 and id <= $3 order by id offset {int(size)} limit 1"
    )
    try:
        async with snapshot(engine) as connection:
            await connection.execute(f"set local statement_timeout = {int(MOST_S * 1000)}")
            end: UUID = await connection.fetchval(ends, span.value, span.after, span.last) or span.last
            rows = await connection.fetch(
                text, span.value, span.after, end, past.from_at, past.to_at, list(past.accounts), *arguments
            )
            return end, rows
    except asyncpg.QueryCanceledError:
        return None, []


def _add(found: SumsByKey, rows: list[asyncpg.Record]) -> int:
    requests = 0
    for row in rows:
        sums = Sums(**{name: int(row[name]) for name in Sums.__struct_fields__})
        owner = (row["account_id"], row["api_key_id"])
        found[owner] = found[owner].plus(sums) if owner in found else sums
        requests += sums.requests
    return requests


async def _of_price(connection: Connection, draft: PriceDraft, from_at: datetime, to_at: datetime) -> Past:
    if draft.price_list_id is None:
        rows = await connection.fetch(_ELSEWHERE, draft.model_id)
    else:
        rows = await connection.fetch("select id from account where price_list_id = $1", draft.price_list_id)
    accounts, only = [row["id"] for row in rows], draft.price_list_id is not None
    about = await connection.fetchval(
        f"select coalesce(sum(requests), 0)::bigint from usage_rollup where model_id = $1 and hour >= $2 and hour < $3"
        f" and account_id {'= any' if only else '<> all'}($4::bigint[])",
        draft.model_id,
        from_at,
        to_at,
        accounts,
    )
    rule = Rule(components=draft.components, minimum_nanos=draft.minimum_nanos, outcome=draft.outcome)
    return Past(
        source="model_id",
        values=(draft.model_id,),
        accounts=tuple(accounts),
        only=only,
        rules=Rules(draft=rule, pinned=await _versions(connection, [draft.model_id])),
        from_at=from_at,
        to_at=to_at,
        rows=about,
    )


async def _of_discount(connection: Connection, draft: DiscountDraft, from_at: datetime, to_at: datetime) -> Past:
    used = await connection.fetch(
        "select api_key_id, model_id, sum(requests)::bigint as requests from usage_rollup"
        " where account_id = $1 and hour >= $2 and hour < $3 group by 1, 2",
        draft.account_id,
        from_at,
        to_at,
    )
    return Past(
        source="api_key_id",
        values=tuple(sorted({row["api_key_id"] for row in used})),
        accounts=(draft.account_id,),
        only=True,
        rules=Rules(
            pinned=await _versions(connection, sorted({row["model_id"] for row in used})),
            discount_ppm=draft.discount_ppm,
        ),
        from_at=from_at,
        to_at=to_at,
        rows=sum(row["requests"] for row in used),
    )


async def _versions(connection: Connection, models: list[int]) -> Mapping[int, Rule]:
    rows: list[Any] = await connection.fetch(
        "select p.id, p.components, p.minimum_nanos, coalesce(p.outcome, m.spec -> 'outcome') as outcome"
        " from price_version p join model m on m.id = p.model_id where p.model_id = any($1::integer[])",
        models,
    )
    return {
        row["id"]: Rule(
            components=read_components(_plain(row["components"])),
            minimum_nanos=row["minimum_nanos"],
            outcome=read_outcome(_plain(row["outcome"])),
        )
        for row in rows
    }


def _plain(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, str | bytes) else value


_ELSEWHERE = """
select a.id from account a
where a.price_list_id is not null and (
  select p.components <> '[]' from price_version p
  where p.model_id = $1 and p.price_list_id = a.price_list_id and p.valid_from <= now()
    and not exists (select from price_cancellation c where c.price_version_id = p.id)
  order by p.valid_from desc, p.id desc limit 1)
"""
"""Accounts whose own price list sells the model: its list price is not theirs."""
