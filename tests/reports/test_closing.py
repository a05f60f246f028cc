"""Hours are closed in order, once nothing can be added to them, and every figure stays the same by it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from gateway.contract.units import Units
from gateway.ledger.accounts import NewAccount
from gateway.ledger.closing.closer import HourCloser
from gateway.ledger.keys import NewKey
from gateway.reports.figures import Figures
from gateway.reports.ranges import Range
from gateway.reports.scope import Dimension, Group, Question, Scope
from tests.ledger.scene import Scene
from tests.reports.week import settle_a_week

HOUR = timedelta(hours=1)
TABLES = ("rollup_day", "rollup_day_model", "rollup_day_key", "rollup_hour_model", "rollup_hour_key")


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


async def close_all(scene: Scene) -> None:
    closer = HourCloser(scene.engine, margin=timedelta(0))
    while await closer.close_next() is not None:
        pass


ZONES = ("UTC", "Asia/Kolkata", "America/Los_Angeles", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago")
QUESTIONS: tuple[tuple[Dimension, ...], ...] = (
    (),
    ("hour",),
    ("day",),
    ("model",),
    ("key", "account"),
    ("hour", "key"),
    ("day", "key", "outcome"),
    ("account", "model", "task", "outcome", "route"),
    ("hour", "route"),
)


async def answers(scene: Scene, during: Range) -> list[list[Group]]:
    """Ask every kind of question, so that every table is read."""
    figures = Figures(scene.engine, timeout_ms=20_000)
    scopes = (Scope(), Scope(key_id=scene.key.id), Scope(account_id=scene.account.id, model="talker"))
    return [
        await figures.groups(Question(range=during, scope=scope, group_by=by, zone_name=zone, units=units))
        for scope in scopes
        for by in QUESTIONS
        for zone in (ZONES if "day" in by else ZONES[:1])
        for units in (True, False)
    ]


async def test_a_week_says_the_same_before_and_after_its_hours_are_closed(scene: Scene) -> None:
    first = scene.account, scene.key
    scene.account = await scene.accounts.create(NewAccount(name="Bob", balance_nanos=10**10))
    scene.key = await scene.keys.create(NewKey(account_id=scene.account.id, name="bob's"))
    others = scene.account, scene.key
    await settle_a_week(scene, [first, others])
    scene.account, scene.key = first
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
    ranges = [Range(now - timedelta(days=9), now), Range(now - timedelta(days=5, hours=7), now - timedelta(hours=30))]
    before = [await answers(scene, each) for each in ranges]
    assert before[0][0][0].sums.requests > 300
    await close_all(scene)
    connection = await asyncpg.connect(scene.database_url)
    for table in (*TABLES, "rollup_day_charge"):
        assert await connection.fetchval(f"select count(*) from {table}") > 5, table
    await connection.close()
    assert [await answers(scene, each) for each in ranges] == before
    report = await scene.books.verify()
    assert [check for check in report.checks if check.verdict == "broken"] == []


async def test_the_books_find_a_closed_hour_that_was_changed(scene: Scene) -> None:
    await settle_a_week(scene, [(scene.account, scene.key)], hours=30, calls=2)
    await close_all(scene)
    for table in TABLES:
        async with scene.tampering(
            f"update {table} set latencies = latencies + 1 where ctid = (select min(ctid) from {table})"
        ) as connection:
            report = await scene.books.verify_in(connection)
            broken = [check for check in report.checks if check.verdict == "broken"]
            assert {check.invariant for check in broken} == {"I13"}, table
            assert len(broken) == 1


async def test_the_books_find_a_charge_of_statements_that_was_changed(scene: Scene) -> None:
    await settle_a_week(scene, [(scene.account, scene.key)], hours=30, calls=2)
    await close_all(scene)
    one = "(select min(ctid) from rollup_day_charge)"
    for change in ("set rated = rated + 1", "set terms = '{\"discount_ppm\": 1}'"):
        async with scene.tampering(f"update rollup_day_charge {change} where ctid = {one}") as connection:
            report = await scene.books.verify_in(connection)
            broken = [check for check in report.checks if check.verdict == "broken"]
            assert [check.statement for check in broken] == [
                "Each sum that statements are made of is that of its usage rows."
            ], change


async def test_an_hour_stays_open_while_a_transaction_of_it_does(scene: Scene) -> None:
    await scene.call(units=Units(input_tokens=3))
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute("update usage_rollup set hour = hour - interval '1 hour'")
    writer = await asyncpg.connect(scene.database_url)
    transaction = writer.transaction()
    await transaction.start()
    await writer.fetchval("select now()")
    # A clock that is an hour ahead: the hour that the transaction began in is over, and the transaction is not.
    closer = HourCloser(scene.engine, margin=-HOUR)
    closed = await closer.close_next()
    assert closed is not None
    assert closed <= datetime.now(UTC)
    assert await closer.close_next() is None
    await transaction.rollback()
    last = await closer.close_next()
    assert last is not None
    assert last > closed
    for each in (connection, writer):
        await each.close()


async def test_an_hour_is_closed_once_however_many_try(scene: Scene) -> None:
    await settle_a_week(scene, [(scene.account, scene.key)], hours=6, calls=1)
    closers = [HourCloser(scene.engine, margin=timedelta(0)) for _ in range(3)]
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute("select pg_advisory_lock(7305411)")
    assert [await closer.close_next() for closer in closers] == [None, None, None]
    await connection.execute("select pg_advisory_unlock(7305411)")
    await close_all(scene)
    assert await connection.fetchval("select sum(requests) from rollup_hour_key") == 6
    await connection.close()
