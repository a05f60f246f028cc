"""Accounts with what they spend, and for how long what they have lasts at the present rate."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.ledger import LEDGER_KINDS
from gateway.reports.asking import page_session
from gateway.reports.figures import Figures
from gateway.reports.ranges import HOUR, Range
from gateway.reports.scope import Question, Scope

RATE_DAYS = 7
"""The present rate is that of so many days."""
SPENT_DAYS = 30
MOST_ACCOUNTS = 20_000
PAGE = 50

AccountState = Literal["active", "suspended", "empty"]


class AccountRow(msgspec.Struct, frozen=True, kw_only=True):
    """An account as lists show it."""

    id: int
    name: str
    kind: str
    available_nanos: int
    credit_limit_nanos: int
    held_nanos: int
    spent_30d_nanos: int
    rate_nanos: int
    """What it was charged in the last RATE_DAYS days."""
    live_keys: int
    suspended: bool
    discount_ppm: int
    price_list_id: int | None
    """Whose prices it pays; None is the list price."""
    created_at: datetime

    @property
    def spendable_nanos(self) -> int:
        """What it can still hold: what is available, and the credit below it."""
        return self.available_nanos + self.credit_limit_nanos

    @property
    def days_left(self) -> int | None:
        """For how many whole days that lasts at the present rate; None where nothing is spent."""
        if self.rate_nanos <= 0:
            return None
        return max(self.spendable_nanos, 0) * RATE_DAYS // self.rate_nanos

    @property
    def state(self) -> AccountState:
        """Whether it can pay."""
        if self.suspended:
            return "suspended"
        return "active" if self.spendable_nanos > 0 else "empty"


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A movement of an account's money that is no charge."""

    at: datetime
    transaction_id: str
    kind: str
    amount_nanos: int
    reason: str


async def account_rows(engine: AsyncEngine, *, only: int | None = None) -> list[AccountRow]:
    """Read all accounts, or one, those first that can pay for the shortest time; who spends nothing comes last."""
    now = datetime.now(UTC)
    spent, rate = await asyncio.gather(*(_charged(engine, now, days, only) for days in (SPENT_DAYS, RATE_DAYS)))
    query = """select a.id, a.name, a.kind, a.available_nanos, a.credit_limit_nanos, a.held_nanos, a.discount_ppm,
        a.price_list_id, a.created_at, a.suspended_at is not null as suspended, coalesce(k.live, 0) as live_keys
      from account a left join (
        select account_id, count(*) as live from api_key
        where revoked_at is null and (expires_at is null or expires_at > now())
          and ($1::bigint is null or account_id = $1) group by 1
      ) k on k.account_id = a.id
      where $1::bigint is null or a.id = $1 order by a.id limit $2"""
    async with page_session(engine) as session:
        found = await session.fetch(query, only, MOST_ACCOUNTS)
    rows = [_row(record, spent.get(record["id"], 0), rate.get(record["id"], 0)) for record in found]
    return sorted(rows, key=_nearest)


def _nearest(row: AccountRow) -> tuple[int, int, int]:
    """Order by days left; suspended ones, and those that spend nothing, after the others."""
    if row.suspended:
        return (2, 0, row.id)
    return (1, -row.available_nanos, row.id) if row.days_left is None else (0, row.days_left, row.id)


async def _charged(engine: AsyncEngine, now: datetime, days: int, only: int | None) -> dict[int, int]:
    to_at = now.replace(minute=0, second=0, microsecond=0) + HOUR
    asked = Question(
        range=Range(to_at - timedelta(days=days), to_at),
        scope=Scope(account_id=only),
        group_by=("account",),
        units=False,
        latencies=False,
    )
    return {group.account_id or 0: group.sums.charge_nanos for group in await Figures(engine).groups(asked)}


def _row(record: asyncpg.Record, spent: int, rate: int) -> AccountRow:
    known: dict[str, Any] = dict(record)
    return AccountRow(**known, spent_30d_nanos=spent, rate_nanos=rate)


async def ledger_page(
    engine: AsyncEngine, account_id: int, *, before: tuple[datetime, str] | None = None, limit: int = PAGE
) -> Sequence[LedgerRow]:
    """Read the movements of an account that are no charges, the latest first; charges stand in its requests."""
    at, number = before or (None, None)
    query = """select at, transaction_id::text, amount_nanos, kind, coalesce(reason, '') as reason from ledger_entry
      where account_id = $1 and kind <> 0 and ($2::timestamptz is null or (at, transaction_id) < ($2, $3::uuid))
      order by at desc, transaction_id desc limit $4"""
    async with page_session(engine) as session:
        rows = await session.fetch(query, account_id, at, number, limit)
    return [LedgerRow(**{**dict(row), "kind": LEDGER_KINDS[row["kind"]]}) for row in rows]


async def balance_steps(engine: AsyncEngine, account_id: int, during: Range) -> list[tuple[datetime, int]]:
    """Read what moved an account's money in a range by hour, charges aside: when, and by how much in all."""
    query = """select date_trunc('hour', at, 'UTC') as hour, sum(amount_nanos)::bigint as amount from ledger_entry
      where account_id = $1 and kind <> 0 and at >= $2 group by 1 order by 1"""
    async with page_session(engine) as session:
        return [(row["hour"], row["amount"]) for row in await session.fetch(query, account_id, during.from_at)]
