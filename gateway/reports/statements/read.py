"""Reads a statement: the ledger's bookings, the usage rows' charges, in one snapshot."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.contract.ids import request_id_of
from gateway.contract.units import UNIT_NAMES
from gateway.db.ledger import LEDGER_KINDS
from gateway.errors import NotFound, TooManyRequests
from gateway.ledger.books.rating import read_prices
from gateway.reports.asking import closed_through, page_session, total
from gateway.reports.ranges import Range
from gateway.reports.request_filter import MOST_OPEN, first_id
from gateway.reports.scope import Question, Scope
from gateway.reports.statements.charges import Sold, charges_of, units_of
from gateway.reports.statements.month import Month
from gateway.reports.statements.records import Booking, BookingKind, Day, Statement

TIMEOUT_MS = 20_000
"""A month of a large account is millions of rows."""

AT_ONCE = 2
CLOCKS = timedelta(minutes=1)
"""Ids are made by the gateways' clocks, ends are told by that of Postgres."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: dict[str, BookingKind] = {"top_up": "top_up", "refund": "refund", "adjustment": "correction"}

_BOOKED = """
from ledger_entry e left join refund r on r.id = e.transaction_id
where e.account_id = $1 and e.kind <> 0 and ($2::bigint is null or r.api_key_id = $2)
"""
_ENTRIES = f"""
select e.at, e.amount_nanos, e.kind, coalesce(e.reason, '') as reason, r.request_id, r.reason as refund_reason
{_BOOKED} and e.at >= $3 and e.at < $4 order by e.at, e.transaction_id
"""
_BOOKED_BEFORE = f"select coalesce(sum(e.amount_nanos), 0)::bigint {_BOOKED} and e.at < $3"
_USED = """
from api_key k cross join lateral (
  select * from usage where api_key_id = k.id and id >= $5 and id < $6 and finished_at >= $3 and finished_at < $4
) u where k.account_id = $1 and ($2::bigint is null or k.id = $2)
"""
_CHARGED = f"select coalesce(sum(u.charge_nanos), 0)::bigint {_USED}"
_OF_ROWS = f"""
select (u.finished_at at time zone $7)::date as day, u.price_version_id, u.terms, u.model_id, count(*) as requests,
  count(*) filter (where u.charge_nanos = 0) as free,
  count(*) filter (where u.charge_nanos > 0 and (u.outcome = 0 or u.forward_began)) as rated,
  sum(u.charge_nanos) as charge_nanos,
  {", ".join(f"coalesce(sum(u.{name}) filter (where u.charge_nanos > 0), 0) as {name}" for name in UNIT_NAMES)}
{_USED} group by 1, 2, 3, 4
"""
_COUNTED = ("requests", "free", "rated", "charge_nanos", *UNIT_NAMES)
_OF_DAYS = f"""
select day, price_version_id, terms, model_id, {", ".join(_COUNTED)} from rollup_day_charge
where account_id = $1 and ($2::bigint is null or api_key_id = $2) and day >= $8::date and day < $9::date
"""
_SOLD = f"""
select s.day, s.price_version_id, s.terms::text as terms, (select m.name from model m where m.id = s.model_id) as model,
  {", ".join(f"sum(s.{name})::bigint as {name}" for name in _COUNTED)}
from ({_OF_DAYS} union all {_OF_ROWS}) s group by 1, 2, s.terms, s.model_id order by 1
"""
_WHO = """
select a.name, now() as now, k.name as key
from account a left join api_key k on k.account_id = a.id and k.id = $2
where a.id = $1 and ($2::bigint is null or k.id is not null)
"""
_BEGAN = """
select now() as now, coalesce(
  k.created_at, least(a.created_at, (select min(e.at) from ledger_entry e where e.account_id = $1 and e.kind <> 0))
) as began
from account a left join api_key k on k.account_id = a.id and k.id = $2
where a.id = $1 and ($2::bigint is null or k.id is not null)
"""


class Whose(msgspec.Struct, frozen=True):
    """An account, or one of its keys alone."""

    account_id: int
    key_id: int | None = None


class Statements:
    """Reads statements. Raises TookTooLong past its time, and Unavailable while Postgres is away."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def read(self, whose: Whose, month: Month) -> Statement:
        """Read the statement of a month. Raises NotFound: no such account or key, or the month has not begun."""
        if self._turns.locked():
            raise TooManyRequests(
                "Other statements are being made; try again soon.", code="export_busy", retry_after_s=2
            )
        async with self._turns, page_session(self._engine, TIMEOUT_MS) as session:
            who = await session.fetchrow(_WHO, whose.account_id, whose.key_id)
            if who is None or month.from_at > who["now"]:
                raise NotFound("There is no such statement.")
            opening = await _balance_at(session, whose, month.from_at)
            bookings = await _bookings(session, whose, month)
            closed = await closed_through(session)
            rows = await _sold_rows(session, whose, month, closed)
            prices = await read_prices(session)
        charged = sum(row["charge_nanos"] for row in rows)
        sums = {kind: sum(each.amount_nanos for each in bookings if each.kind == kind) for kind in _KINDS.values()}
        sold = [_sold(row) for row in rows]
        return Statement(
            account_id=whose.account_id,
            account=who["name"],
            key_id=whose.key_id,
            key=who["key"] or "",
            month=month.name,
            zone_name=month.zone_name,
            from_at=month.from_at,
            to_at=month.to_at,
            made_at=who["now"],
            provisional=closed < month.to_at,
            opening_nanos=opening,
            top_up_nanos=sums["top_up"],
            charge_nanos=charged,
            refund_nanos=sums["refund"],
            correction_nanos=sums["correction"],
            closing_nanos=opening + sum(sums.values()) - charged,
            charges=charges_of(sold, prices),
            bookings=bookings,
            days=_days(month, who["now"], opening, bookings, rows),
        )

    async def months(self, whose: Whose, zone_name: str = "UTC") -> tuple[Month, ...]:
        """Give the months that an account, or a key, has statements of, the present one first. Raises NotFound."""
        async with page_session(self._engine) as session:
            row = await session.fetchrow(_BEGAN, whose.account_id, whose.key_id)
        if row is None:
            raise NotFound("There is no such account.")
        began: datetime = row["began"].astimezone(Month(2000, 1, zone_name).zone)
        now = row["now"].astimezone(began.tzinfo)
        found = [Month(now.year, now.month, zone_name)]
        while (found[-1].year, found[-1].month) > (began.year, began.month):
            found.append(found[-1].before)
        return tuple(found)


async def _sold_rows(
    session: "asyncpg.Connection[asyncpg.Record]", whose: Whose, month: Month, closed: datetime
) -> list[asyncpg.Record]:
    """Read what was sold: sums by day for closed hours, and usage rows for the others. Other zones have other days."""
    if month.zone_name == "UTC":
        open_from, days = min(max(closed, month.from_at), month.to_at), (month.from_at.date(), month.to_at.date())
    else:
        open_from, days = month.from_at, (month.from_at.date(), month.from_at.date())
    bounds = _bounds(open_from, month.to_at)
    rows: list[asyncpg.Record] = await session.fetch(
        _SOLD, whose.account_id, whose.key_id, *bounds, month.zone_name, *days
    )
    return rows


async def _balance_at(session: "asyncpg.Connection[asyncpg.Record]", whose: Whose, at: datetime) -> int:
    """Add up what somebody had at an instant: all bookings before it, less all charges before it.

    Charges come from rollups for whole hours, and from usage rows for the rest of an hour (zones that are not whole
    hours from UTC).
    """
    booked: int = await session.fetchval(_BOOKED_BEFORE, whose.account_id, whose.key_id, at)
    hour = at.replace(minute=0, second=0, microsecond=0)
    scope = Scope(account_id=whose.account_id, key_id=whose.key_id)
    asked = Question(range=Range(_EPOCH, hour), scope=scope, units=False)
    charged = (await total(session, asked)).charge_nanos
    if hour < at:
        charged += await session.fetchval(_CHARGED, whose.account_id, whose.key_id, *_bounds(hour, at))
    return booked - charged


def _bounds(from_at: datetime, to_at: datetime) -> tuple[datetime, datetime, UUID, UUID]:
    """Give the parameters of _USED: instants of ends, and ids that can have ended between them."""
    return from_at, to_at, first_id(from_at - MOST_OPEN), first_id(to_at + CLOCKS)


async def _bookings(session: "asyncpg.Connection[asyncpg.Record]", whose: Whose, month: Month) -> tuple[Booking, ...]:
    rows = await session.fetch(_ENTRIES, whose.account_id, whose.key_id, month.from_at, month.to_at)
    return tuple(
        Booking(
            at=row["at"],
            kind=_KINDS[LEDGER_KINDS[row["kind"]]],
            amount_nanos=row["amount_nanos"],
            reason=row["refund_reason"] or row["reason"],
            request_id=request_id_of(row["request_id"]) if row["request_id"] else "",
        )
        for row in rows
    )


def _sold(row: asyncpg.Record) -> Sold:
    return Sold(
        model=row["model"] or "",
        price_version=row["price_version_id"],
        terms=row["terms"],
        requests=row["requests"],
        free=row["free"],
        rated=row["rated"],
        units=units_of(row),
        charge_nanos=row["charge_nanos"],
    )


def _days(
    month: Month, now: datetime, opening: int, bookings: Sequence[Booking], rows: Sequence[asyncpg.Record]
) -> tuple[Day, ...]:
    last = min(month.to_at - timedelta(microseconds=1), now).astimezone(month.zone).date()
    count = (last - date(month.year, month.month, 1)).days + 1
    days = []
    balance = opening
    for place in range(count):
        day = date(month.year, month.month, 1) + timedelta(days=place)
        booked = [each for each in bookings if each.at.astimezone(month.zone).date() == day]
        sums = {kind: sum(each.amount_nanos for each in booked if each.kind == kind) for kind in _KINDS.values()}
        here = [row for row in rows if row["day"] == day]
        charged = sum(row["charge_nanos"] for row in here)
        balance += sum(sums.values()) - charged
        days.append(
            Day(
                day=day,
                requests=sum(row["requests"] for row in here),
                top_up_nanos=sums["top_up"],
                charge_nanos=charged,
                refund_nanos=sums["refund"],
                correction_nanos=sums["correction"],
                closing_nanos=balance,
            )
        )
    return tuple(days)
