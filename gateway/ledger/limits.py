"""Limits of accounts and keys: set, lifted and shown. Admission counts against them (`sql/limits.sql`).

A new limit begins with what it would have counted had it always been there: a budget with the charges and holds of its
running period, a rate with the last minute, places with what is open. All under the account's lock, which whoever
counts holds too. What is changed later keeps its count.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import msgspec
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.db.accounts import account, api_key
from gateway.db.limits import OWNER_KINDS, RING_SECONDS, rate_limit, spending_limit
from gateway.errors import InvalidRequest, NotFound
from gateway.ledger.audit import Action, Actor, write_audit
from gateway.ledger.limit_records import (
    BudgetState,
    LimitChanges,
    Limits,
    OwnerKind,
    Period,
    RateKind,
    RateLimit,
    RateState,
)
from gateway.ledger.movements import lock_account, show_account
from gateway.ledger.revisions import next_keys_revision
from gateway.ledger.transaction import transaction
from gateway.money import MAX_NANOS

_SQL = files("gateway.ledger") / "sql"
_OWNER_LIMITS, _CHARGED, _OPEN, _RECENT = (
    (_SQL / f"{name}.sql").read_text("utf-8") for name in ("owner_limits", "charged_since", "open_since", "recent_use")
)

SETTLED = timedelta(minutes=10)
"""A settlement that began so long ago has ended: no usage row of then is yet to appear."""
_EVER = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Owner(msgspec.Struct, frozen=True):
    """Whose limits."""

    kind: OwnerKind
    id: int


class _Whole(msgspec.Struct, frozen=True):
    """An owner with the account whose lock guards it, and the keys whose requests count against it."""

    owner: Owner
    account_id: int
    keys: list[int]

    @property
    def number(self) -> int:
        """The kind as it is stored."""
        return OWNER_KINDS.index(self.owner.kind)


class _Counted(msgspec.Struct, frozen=True):
    """What was charged of requests that were admitted since an instant, and finished until another."""

    since: datetime
    until: datetime
    nanos: int


class LimitStore:
    """Sets, lifts and shows limits."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def show(self, owner: Owner) -> Limits:
        """Show the limits of an account or a key. Raises NotFound."""
        async with transaction(self._engine) as connection:
            await _whole(connection, owner)
            return await limits_of(connection, owner)

    async def change(self, owner: Owner, changes: LimitChanges, by: Actor | None = None) -> Limits:
        """Set or lift the limits that are named. Raises NotFound or InvalidRequest."""
        _check(changes)
        settled = datetime.now(UTC) - SETTLED
        wanted: list[Period] = [period for period, nanos in changes.budgets.items() if nanos is not None]
        async with transaction(self._engine) as connection:  # the long sums, before anything is locked
            whole = await _whole(connection, owner)
            before = {period: await _settled_before(connection, whole, period, settled) for period in wanted}
        async with transaction(self._engine) as connection:
            await lock_account(connection, whole.account_id)
            whole = await _whole(connection, owner)
            old = await limits_of(connection, owner)
            for period, nanos in changes.budgets.items():
                await _set_budget(connection, whole, period, nanos, before.get(period))
            for what, rate in changes.rates.items():
                await _set_rate(connection, whole, what, rate)
            new = await limits_of(connection, owner)
            await _mark(connection, whole, limited=bool(new.budgets or new.rates))
            action = Action(
                name=f"{owner.kind}.limit",
                object_kind=owner.kind,
                object_id=str(owner.id),
                changes=_differences(old, new),
            )
            if action.changes:
                await write_audit(connection, by, action)
            return new


async def limits_of(connection: AsyncConnection, owner: Owner) -> Limits:
    """Read the limits of an owner, as they stand now."""
    budgets: dict[Period, BudgetState] = {}
    rates: dict[RateKind, RateState] = {}
    rows = await connection.exec_driver_sql(_OWNER_LIMITS, (OWNER_KINDS.index(owner.kind), owner.id))
    for row in rows.mappings():
        left = max(row["most"] - row["used"], 0)
        if row["kind"] == "budget":
            budgets[row["name"]] = BudgetState(
                limit_nanos=row["most"],
                used_nanos=row["used"],
                left_nanos=left,
                since=row["since"],
                resets_at=row["resets_at"],
            )
        else:
            rates[row["name"]] = RateState(most=row["most"], burst=row["burst"], used=row["used"], left=left)
    return Limits(owner=owner.kind, id=owner.id, budgets=budgets, rates=rates)


def _check(changes: LimitChanges) -> None:
    for period, nanos in changes.budgets.items():
        if nanos is not None and not 0 <= nanos <= MAX_NANOS:
            raise InvalidRequest("A budget is zero or more, or null for none.", param=f"budgets.{period}")
    places = changes.rates.get("concurrent")
    if places is not None and places.burst is not None:
        raise InvalidRequest("Requests that are open at once have no burst.", param="rates.concurrent.burst")
    for what, rate in changes.rates.items():
        if rate is not None and rate.burst is not None and rate.burst > rate.most:
            raise InvalidRequest("A burst is at most the limit.", param=f"rates.{what}.burst")


async def _whole(connection: AsyncConnection, owner: Owner) -> _Whole:
    if owner.kind == "key":
        of_key = select(api_key.c.account_id).where(api_key.c.id == owner.id)
        account_id = (await connection.execute(of_key)).scalar_one_or_none()
        if account_id is None:
            raise NotFound("There is no such key.", code="key_not_found")
        return _Whole(owner, account_id, [owner.id])
    await show_account(connection, owner.id)
    of_account = select(api_key.c.id).where(api_key.c.account_id == owner.id)
    return _Whole(owner, owner.id, list((await connection.execute(of_account)).scalars()))


async def _one(connection: AsyncConnection, statement: str, *arguments: Any) -> int:
    return int((await connection.exec_driver_sql(statement, arguments)).scalar_one())


async def _since(connection: AsyncConnection, period: Period) -> datetime:
    """Give when the running period began, by Postgres' clock."""
    started = "select period_start($1, now())"
    since: datetime = (await connection.exec_driver_sql(started, (period,))).scalar_one()
    return since


async def _settled_before(connection: AsyncConnection, whole: _Whole, period: Period, settled: datetime) -> _Counted:
    since = await _since(connection, period)
    if period == "total":
        return _Counted(since, settled, 0)
    return _Counted(since, settled, await _one(connection, _CHARGED, whole.keys, since, _EVER, settled))


async def _set_budget(
    connection: AsyncConnection, whole: _Whole, period: Period, nanos: int | None, before: _Counted | None
) -> None:
    table = spending_limit.c
    mine = (table.owner_kind == whole.number, table.owner_id == whole.owner.id, table.period == period)
    if nanos is None:
        await connection.execute(delete(spending_limit).where(*mine))
        return
    changed = update(spending_limit).where(*mine).values(limit_nanos=nanos, alerted=_still_told(nanos))
    if (await connection.execute(changed)).rowcount:
        return
    since = await _since(connection, period)
    values = {"limit_nanos": nanos, "since": since, "period": period}
    values["used_nanos"] = await _used(connection, whole, since, before)
    await connection.execute(insert(spending_limit).values(**_owner(whole), **values))


async def _used(connection: AsyncConnection, whole: _Whole, since: datetime, before: _Counted | None) -> int:
    """Count what a new budget has used in the period that began at `since`."""
    if since.year == datetime.min.year:  # of all time, which every key counts anyway
        used_of = select(func.coalesce(func.sum(api_key.c.used_nanos), 0)).where(api_key.c.id.in_(whole.keys))
        return int((await connection.execute(used_of)).scalar_one())
    if before is None or before.since != since:
        before = _Counted(since, _EVER, 0)
    charged = await _one(connection, _CHARGED, whole.keys, since, before.until, _NEVER)
    return before.nanos + charged + await _one(connection, _OPEN, whole.keys, since)


def _still_told(nanos: int) -> Any:
    """Give the highest threshold that stays told under another limit: the others are told again when they are met."""
    table = spending_limit.c
    reached = func.limit_reached(table.used_nanos, nanos)
    return func.least(table.alerted, reached)


async def _set_rate(connection: AsyncConnection, whole: _Whole, what: RateKind, rate: RateLimit | None) -> None:
    table = rate_limit.c
    mine = (table.owner_kind == whole.number, table.owner_id == whole.owner.id, table.what == what)
    if rate is None:
        await connection.execute(delete(rate_limit).where(*mine))
        return
    changed = update(rate_limit).where(*mine).values(most=rate.most, burst=rate.burst)
    if (await connection.execute(changed)).rowcount:
        return
    values: dict[str, Any] = {"what": what, "most": rate.most, "burst": rate.burst}
    if what == "concurrent":
        open_now = "select count(*) from open_request o where o.api_key_id = any ($1::bigint[])"
        values["used"] = await _one(connection, open_now, whole.keys)
    else:
        rows = (await connection.exec_driver_sql(_RECENT, (whole.keys,))).mappings().all()
        values |= _ring([(row["second"], row[what]) for row in rows])
    await connection.execute(insert(rate_limit).values(**_owner(whole), **values))


def _owner(whole: _Whole) -> dict[str, int]:
    return {"owner_kind": whole.number, "owner_id": whole.owner.id}


def _ring(asked: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Give what was asked for in each second of the last minute as a rate counts it."""
    last = max((second for second, _ in asked), default=0)
    counts = [0] * RING_SECONDS
    for second, units in asked:
        if last - second < RING_SECONDS:
            counts[second % RING_SECONDS] += units
    return {"second": last, "counts": counts, "used": sum(counts)}


async def _mark(connection: AsyncConnection, whole: _Whole, *, limited: bool) -> None:
    """Tell admission whether it has to look, and gateways whether they are to expect it."""
    number = await next_keys_revision(connection)
    if whole.owner.kind == "account":
        await connection.execute(update(account).where(account.c.id == whole.account_id).values(limited=limited))
    else:
        await connection.execute(update(api_key).where(api_key.c.id == whole.owner.id).values(limited=limited))
    await connection.execute(update(api_key).where(api_key.c.id.in_(whole.keys)).values(revision=number))


def _differences(old: Limits, new: Limits) -> dict[str, tuple[Any, Any]]:
    def said(limits: Limits) -> dict[str, Any]:
        rates = {f"rates.{what}": _rate_words(rate) for what, rate in limits.rates.items()}
        return {f"budgets.{period}": one.limit_nanos for period, one in limits.budgets.items()} | rates

    before, after = said(old), said(new)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: (before.get(name), after.get(name)) for name in names}


def _rate_words(rate: RateState) -> int | dict[str, int]:
    return rate.most if rate.burst is None else {"most": rate.most, "burst": rate.burst}
