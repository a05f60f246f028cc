"""API keys with how near they are to their limits, the nearest first."""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.reports.asking import page_session
from gateway.reports.request_filter import first_id

PAGE = 50
MOST_COUNTED = 10_000
PEAK = timedelta(minutes=15)
"""How far back the busiest minute is looked for."""
PPM = 1_000_000

KeyState = Literal["live", "stopped", "all"]
"""A stopped key was revoked, has expired, or its account is suspended."""

_LIVE = "(k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) and a.suspended_at is null)"
_WANTED = f"""($1::text = '' or position(lower($1) in lower(k.name)) > 0 or starts_with(k.prefix, left($1, 12)))
  and ($2::bigint is null or k.account_id = $2)
  and ($3::text = 'all' or ($3 = 'live') = {_LIVE})"""


class KeyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which keys."""

    text: str = ""
    """In their name, or what they begin with."""
    account_id: int | None = None
    state: KeyState = "live"
    after: tuple[int, int] | None = None
    """Share and id that the page before ended with."""
    limit: int = PAGE


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A key as lists show it."""

    id: int
    name: str
    prefix: str
    account_id: int
    account: str
    state: Literal["live", "revoked", "expired", "suspended"]
    limit_period: str
    """Of its budget that is nearest to its end: `in all`, or day, week or month; empty where it has none."""
    limit_nanos: int | None
    used_nanos: int
    share_ppm: int
    """Of that budget, what is used, in millionths; -1 without one."""
    requests_most: int | None
    """Requests a minute that it may ask for."""
    peak: int
    """The most requests of one minute of the last quarter of an hour."""
    models: list[str] | None
    last_used_at: datetime | None
    expires_at: datetime | None

    @property
    def label(self) -> str:
        """What it is called: its name, else how it begins."""
        return self.name or f"{self.prefix}…"


async def list_keys(engine: AsyncEngine, query: KeyQuery) -> list[KeyRow]:
    """Read one page of keys, by the share of their budget that is used."""
    statement = f"""with judged as (
        select k.*, a.name as account, a.suspended_at, t.period, t.most, t.used,
          case when t.most is null then -1 when t.most = 0 then {PPM}
            else least(t.used::numeric * {PPM} / t.most, 1e12)::bigint end as share
        from api_key k join account a on a.id = k.account_id
        left join lateral (
          select b.period, b.most, b.used from (
            select 'in all' as period, k.budget_nanos as most, k.used_nanos as used where k.budget_nanos is not null
            union all
            select l.period, l.limit_nanos,
              case when l.since < period_start(l.period, now()) then 0 else l.used_nanos end
            from spending_limit l where l.owner_kind = 1 and l.owner_id = k.id
          ) b order by case when b.most = 0 then 1 else b.used::numeric / b.most end desc, b.period limit 1
        ) t on true
        where {_WANTED}
      ), page as (
        select * from judged where $4::bigint is null or (share, id) < ($4, $5)
        order by share desc, id desc limit $6
      )
      select p.*, r.most as requests_most, coalesce(m.peak, 0) as peak from page p
      left join rate_limit r on r.owner_kind = 1 and r.owner_id = p.id and r.what = 'requests'
      left join lateral (
        select count(*) as peak from usage u where u.api_key_id = p.id and u.id >= $7
        group by date_trunc('minute', uuid_extract_timestamp(u.id)) order by 1 desc limit 1
      ) m on p.last_used_at > now() - interval '1 hour'
      order by p.share desc, p.id desc"""
    share, number = query.after or (None, None)
    since = first_id(datetime.now(UTC) - PEAK)
    async with page_session(engine) as session:
        rows = await session.fetch(
            statement, query.text, query.account_id, query.state, share, number, query.limit, since
        )
    return [_row(row, datetime.now(UTC)) for row in rows]


async def count_keys(engine: AsyncEngine, query: KeyQuery) -> int:
    """Count the keys, up to one more than MOST_COUNTED."""
    statement = f"""select count(*) from (select from api_key k join account a on a.id = k.account_id where {_WANTED}
      limit {MOST_COUNTED + 1}) found"""
    async with page_session(engine) as session:
        return int(await session.fetchval(statement, query.text, query.account_id, query.state))


def _row(row: asyncpg.Record, now: datetime) -> KeyRow:
    known: dict[str, Any] = dict(row)
    state: Literal["live", "revoked", "expired", "suspended"] = "live"
    if known["revoked_at"] is not None:
        state = "revoked"
    elif known["expires_at"] is not None and known["expires_at"] <= now:
        state = "expired"
    elif known["suspended_at"] is not None:
        state = "suspended"
    return KeyRow(
        id=known["id"],
        name=known["name"],
        prefix=known["prefix"],
        account_id=known["account_id"],
        account=known["account"],
        state=state,
        limit_period=known["period"] or "",
        limit_nanos=known["most"],
        used_nanos=known["used"] if known["most"] is not None else known["used_nanos"],
        share_ppm=known["share"],
        requests_most=known["requests_most"],
        peak=known["peak"],
        models=known["models"],
        last_used_at=known["last_used_at"],
        expires_at=known["expires_at"],
    )
