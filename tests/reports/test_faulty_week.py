"""Reports equal the ledger to the nano, for every hour and key, after a week in which much went wrong."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from gateway.contract.ids import request_id_of
from gateway.contract.units import UNIT_NAMES
from gateway.errors import Unavailable
from gateway.ledger.accounts import NewAccount
from gateway.ledger.audit import Actor
from gateway.ledger.closing.closer import HourCloser
from gateway.ledger.corrections import Corrections, NewCorrection
from gateway.ledger.keys import NewKey
from gateway.ledger.records import Line
from gateway.ledger.refunds import NewRefund, Refunds
from gateway.reports.figures import Figures
from gateway.reports.ranges import Range
from gateway.reports.scope import Question
from gateway.reports.statements.month import month_of
from gateway.reports.statements.read import Statements, Whose
from tests.ledger.scene import USD, Scene
from tests.reports.faulty_week import Owner, Trade, connected

ADA = Actor(name="ada", role="owner", door="dashboard")
HOUR = timedelta(hours=1)
HOURS = 7 * 24
MEASURES = ("charge_nanos", "cost_nanos", "gpu_us", *UNIT_NAMES)


@pytest.fixture
async def trade(database_url: str) -> AsyncIterator[Trade]:
    """Three owners, one with two keys, one with a discount; a week of theirs."""
    scene = await Scene.open(database_url)
    second = await scene.keys.create(NewKey(account_id=scene.account.id, name="second"))
    bob = await scene.accounts.create(NewAccount(name="Bob", balance_nanos=10 * USD))
    bobs = await scene.keys.create(NewKey(account_id=bob.id, name="bob's"))
    owners = [
        Owner(scene.account.id, scene.key.id),
        Owner(scene.account.id, second.id),
        Owner(bob.id, bobs.id, discount_ppm=123_457),
    ]
    db = await connected(scene)
    made = Trade(scene, owners, db)
    await made.week(HOURS)
    yield made
    await made.close()
    await db.close()
    await scene.close()


async def interrupted(trade: Trade, closer: HourCloser) -> None:
    """Kill a closer between the tables of an hour: nothing of that hour is closed."""
    before = await trade.db.fetchrow(_STATE)
    other = await connected(trade.scene)
    blocking = other.transaction()
    await blocking.start()
    await other.execute("lock table rollup_hour_key in access exclusive mode")
    closing = asyncio.create_task(closer.close_next())
    end = asyncio.get_running_loop().time() + 90
    while not await trade.db.fetch(_KILL_WAITING):
        assert asyncio.get_running_loop().time() < end, "the closer does not come to the table"
        await asyncio.sleep(0.01)
    with pytest.raises(Unavailable):
        await closing
    await blocking.rollback()
    await other.close()
    assert await trade.db.fetchrow(_STATE) == before


_STATE = """
select (select closed_through from rollup_state), (select count(*) from rollup_hour_model),
  (select count(*) from rollup_hour_key)"""
_KILL_WAITING = """
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
and application_name = 'faregate' and wait_event_type = 'Lock' and query ilike '%rollup_hour_key%'"""


async def close_all(trade: Trade) -> None:
    """Close all hours by two closers at once, one of which is killed amid an hour, while calls still end."""
    closers = [HourCloser(trade.scene.engine, margin=timedelta(0)) for _ in range(2)]
    for _ in range(2):
        await closers[0].close_next()
    await interrupted(trade, closers[1])
    late, trade.open = trade.open, []

    async def close(closer: HourCloser) -> None:
        for _ in range(HOURS):
            await closer.close_next()

    await asyncio.gather(close(closers[0]), close(closers[1]), trade.settle(late))
    while await closers[0].close_next() is not None:
        pass


async def give_back(trade: Trade) -> int:
    """Refund charges in full, in part, and one of them twice by the same id; correct one. Answers what was refunded."""
    refunds, given = Refunds(trade.scene.engine), 0
    charged = await trade.db.fetch("select id, charge_nanos from usage where charge_nanos > 9 order by id limit 9")
    for n, row in enumerate(charged):
        amount = None if n % 2 else row["charge_nanos"] // 3
        new = NewRefund(request_id=request_id_of(row["id"]), reason="bad", amount_nanos=amount, transaction_id=uuid4())
        for _ in range(1 + (n == 4)):
            told = await refunds.give(new, ADA)
        given += told.amount_nanos
    lines = (
        Line(side=f"account:{trade.owners[0].account_id}", amount_nanos=777),
        Line(side="outside", amount_nanos=-777),
    )
    await Corrections(trade.scene.engine).post(NewCorrection(lines=lines, reason="booked wrongly"), ADA)
    return given


async def test_reports_equal_the_ledger_for_every_hour_and_key_after_a_week_of_faults(trade: Trade) -> None:
    await close_all(trade)
    given = await give_back(trade)
    db = trade.db
    assert trade.kills, "no settler was killed amid its work"
    assert await db.fetchval("select count(distinct price_version_id) from usage") > 6
    assert await db.fetchval("select count(*) from usage where terms is not null and charge_nanos > 0") > 20
    assert await db.fetchval("select count(*) from open_request") == 0
    assert await db.fetchval("select count(distinct hour) from usage_rollup") > 100
    for what, query in _DIFFERENCES.items():
        assert await db.fetch(query) == [], what
    assert await db.fetchval("select sum(amount_nanos) from refund") == given
    await figures_are_the_ledgers(trade)
    for owner in {owner.account_id for owner in trade.owners}:
        await statements_are_the_ledgers(trade, owner)
    report = await trade.scene.books.verify()
    assert [check for check in report.checks if check.verdict == "broken"] == []
    await one_nano_is_found(trade)


async def one_nano_is_found(trade: Trade) -> None:
    """Change each table by one nano, and see the comparison tell of it."""
    for table in ("usage_rollup", "rollup_hour_key", "rollup_hour_model", "rollup_day_key", "rollup_day_charge"):
        changing = trade.db.transaction()
        await changing.start()
        await trade.db.execute(
            f"update {table} set charge_nanos = charge_nanos + 1 where ctid = (select min(ctid) from {table})"
        )
        assert [what for what, query in _DIFFERENCES.items() if await trade.db.fetch(query)], table
        await changing.rollback()


async def figures_are_the_ledgers(trade: Trade) -> None:
    """Ask as pages do, of hours and of days, and hold each answer against the entries."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
    figures = Figures(trade.scene.engine, timeout_ms=20_000)
    during = Range(now - timedelta(days=9), now)
    hourly = await figures.groups(Question(range=during, group_by=("hour", "key")))
    entries = {(row["hour"], row["api_key_id"]): row["nanos"] for row in await trade.db.fetch(_ENTRIES)}
    assert len(entries) > 150
    assert {(group.hour, group.key_id): group.sums.charge_nanos for group in hourly} == entries
    daily = await figures.groups(Question(range=during, group_by=("day", "key", "outcome")))
    assert sum(group.sums.charge_nanos for group in daily) == sum(entries.values())
    assert sum(group.sums.requests for group in daily) == sum(group.sums.requests for group in hourly)


async def statements_are_the_ledgers(trade: Trade, account_id: int) -> None:
    """Read the months of the week: what is left at the end is what the account has."""
    now = datetime.now(UTC)
    months = dict.fromkeys((month_of(now - timedelta(days=8)), month_of(now)))
    read = [await Statements(trade.scene.engine).read(Whose(account_id), month) for month in months]
    row = await trade.db.fetchrow(_ACCOUNT, account_id)
    assert sum(each.charge_nanos for each in read) == -row["charged"]
    assert sum(each.refund_nanos for each in read) == row["refunded"]
    assert read[-1].closing_nanos == row["available_nanos"] == row["booked"]
    assert row["spent_nanos"] == -row["charged"] - row["refunded"]
    assert (row["held_nanos"], row["topped_up_nanos"]) == (0, row["available_nanos"] + row["spent_nanos"])


_ENTRIES = """
select date_trunc('hour', e.at, 'UTC') as hour, u.api_key_id, -sum(e.amount_nanos)::bigint as nanos
from ledger_entry e join usage u on u.id = e.transaction_id and u.account_id = e.account_id
where e.kind = 0 group by 1, 2"""
_ACCOUNT = """
select a.*, (select sum(amount_nanos)::bigint from ledger_entry e where e.account_id = a.id) as booked,
  (select sum(amount_nanos)::bigint from ledger_entry e where e.account_id = a.id and kind = 0) as charged,
  (select coalesce(sum(amount_nanos), 0)::bigint from refund r where r.account_id = a.id) as refunded
from account a where a.id = $1"""


def _sums(table: str, by: str, requests: str = "sum(requests)") -> str:
    sums = ", ".join(f"coalesce(sum({measure}), 0) as {measure}" for measure in MEASURES)
    return f"select {by}, {requests} as requests, {sums} from {table}"


def _difference(one: str, other: str) -> str:
    return f"(({one}) except ({other})) union all (({other}) except ({one}))"


_HOUR, _DAY = "hour", "(hour at time zone 'UTC')::date as day"
_CLOSED = "usage_rollup where hour < (select closed_through from rollup_state)"
_CLOSED_DAYS = "usage_rollup where hour < (select date_trunc('day', closed_through, 'UTC') from rollup_state)"
_KEY, _MODEL = "account_id, api_key_id, outcome", "model_id, task, outcome, route"
_DIFFERENCES = {
    "the hourly sums are those of usage": _difference(
        _sums("usage", f"date_trunc('hour', finished_at, 'UTC') as hour, {_KEY}, model_id, task, route", "count(*)")
        + f" group by 1, {_KEY}, model_id, task, route",
        _sums("usage_rollup", f"hour, {_KEY}, model_id, task, route")
        + f" group by hour, {_KEY}, model_id, task, route",
    ),
    "hours by key": _difference(
        _sums(_CLOSED, f"hour, {_KEY}") + f" group by hour, {_KEY}",
        _sums("rollup_hour_key", f"hour, {_KEY}") + f" group by hour, {_KEY}",
    ),
    "hours by model": _difference(
        _sums(_CLOSED, f"hour, {_MODEL}") + f" group by hour, {_MODEL}",
        _sums("rollup_hour_model", f"hour, {_MODEL}") + f" group by hour, {_MODEL}",
    ),
    "days": _difference(
        _sums(_CLOSED_DAYS, f"{_DAY}, {_KEY}, model_id, task, route") + f" group by 1, {_KEY}, model_id, task, route",
        _sums("rollup_day", f"day, {_KEY}, model_id, task, route") + f" group by day, {_KEY}, model_id, task, route",
    ),
    "days by key": _difference(
        _sums(_CLOSED_DAYS, f"{_DAY}, {_KEY}") + f" group by 1, {_KEY}",
        _sums("rollup_day_key", f"day, {_KEY}") + f" group by day, {_KEY}",
    ),
    "days by model": _difference(
        _sums(_CLOSED_DAYS, f"{_DAY}, {_MODEL}") + f" group by 1, {_MODEL}",
        _sums("rollup_day_model", f"day, {_MODEL}") + f" group by day, {_MODEL}",
    ),
    "charges of days, for statements": _difference(
        "select account_id, (finished_at at time zone 'UTC')::date, api_key_id, model_id, price_version_id, "
        "coalesce(terms::text, ''), count(*), count(*) filter (where charge_nanos = 0), sum(charge_nanos) from usage "
        "where finished_at < (select closed_through from rollup_state) group by 1, 2, 3, 4, 5, 6",
        "select account_id, day, api_key_id, model_id, price_version_id, coalesce(terms::text, ''), sum(requests), "
        "sum(free), sum(charge_nanos) from rollup_day_charge group by 1, 2, 3, 4, 5, 6",
    ),
    "every charge is booked where its usage says": """
        select from usage u full join (select * from ledger_entry where kind = 0 and account_id > 0) e
          on e.transaction_id = u.id and e.account_id = u.account_id
        where u.charge_nanos is distinct from -e.amount_nanos
          or date_trunc('hour', u.finished_at) is distinct from date_trunc('hour', e.at)""",
    "every transaction sums to zero": "select from ledger_entry group by transaction_id having sum(amount_nanos) <> 0",
}
