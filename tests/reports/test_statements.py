"""A statement is what the ledger says, to the nano, in each of its four forms."""

import csv
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import asyncpg
import msgspec
import pytest

from gateway.errors import NotFound
from gateway.ledger.accounts import NewAccount
from gateway.ledger.audit import Actor
from gateway.ledger.closing.closer import HourCloser
from gateway.ledger.keys import NewKey
from gateway.ledger.refunds import NewRefund, Refunds
from gateway.reports.statements.month import Month, month_of, read_month
from gateway.reports.statements.pdf import statement_pdf
from gateway.reports.statements.read import Statements, Whose
from gateway.reports.statements.records import Statement
from gateway.reports.statements.shown import decimals, dollars, shown
from gateway.reports.statements.tables import statement_csv
from tests.ledger.scene import Scene
from tests.reports.week import settle_a_week

ADA = Actor(name="ada", role="owner", door="dashboard")


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


def months_around() -> list[Month]:
    """Give the months that the last week lies in, and the one before them."""
    now = datetime.now(UTC)
    found = [month_of(now), month_of(now - timedelta(days=8))]
    return [month for place, month in enumerate(found) if month not in found[:place]] + [found[-1].before]


async def ledger_sum(scene: Scene, condition: str, *arguments: object) -> int:
    connection = await asyncpg.connect(scene.database_url)
    found = await connection.fetchval(
        f"select coalesce(sum(amount_nanos), 0)::bigint from ledger_entry where account_id = $1 and {condition}",
        scene.account.id,
        *arguments,
    )
    await connection.close()
    return int(found)


def nanos(text: str) -> int:
    return int(Decimal(text) * 10**9)


async def test_every_figure_is_the_ledgers_and_the_next_month_begins_where_this_one_ends(scene: Scene) -> None:
    await settle_a_week(scene, [(scene.account, scene.key)], calls=2)
    await scene.accounts.top_up(scene.account.id, 12_345)
    for zone in ("UTC", "Asia/Kolkata", "America/New_York"):
        closing = None
        for month in reversed(months_around()):
            month = msgspec.structs.replace(month, zone_name=zone)
            try:
                found = await Statements(scene.engine).read(Whose(scene.account.id), month)
            except NotFound:
                assert month.from_at > datetime.now(UTC)
                continue
            within = (month.from_at, month.to_at)
            assert found.opening_nanos == await ledger_sum(scene, "at < $2", month.from_at)
            assert found.closing_nanos == await ledger_sum(scene, "at < $2", month.to_at)
            assert -found.charge_nanos == await ledger_sum(scene, "kind = 0 and at >= $2 and at < $3", *within)
            assert found.top_up_nanos == await ledger_sum(scene, "kind = 1 and at >= $2 and at < $3", *within)
            booked = found.top_up_nanos + found.refund_nanos + found.correction_nanos
            assert found.opening_nanos + booked - found.charge_nanos == found.closing_nanos
            assert closing in (None, found.opening_nanos)
            closing = found.closing_nanos
            assert sum(charge.amount_nanos for charge in found.charges) == found.charge_nanos
            assert sum(day.charge_nanos for day in found.days) == found.charge_nanos
            assert found.days[-1].closing_nanos == found.closing_nanos
            for charge in found.charges:
                assert sum(Decimal(line.amount_usd) for line in charge.lines) * 10**9 == charge.amount_nanos
        assert closing == await ledger_sum(scene, "true")


async def test_a_keys_statement_is_what_the_ledger_says_of_that_key_alone(scene: Scene) -> None:
    other = await scene.keys.create(NewKey(account_id=scene.account.id, name="other"))
    await settle_a_week(scene, [(scene.account, scene.key), (scene.account, other)], hours=30, calls=3)
    await scene.accounts.top_up(scene.account.id, 777)
    mine = await scene.call()
    await Refunds(scene.engine).give(NewRefund(request_id=mine, amount_nanos=123, reason="dark"), ADA)
    of_key = (
        "transaction_id in (select id from usage where api_key_id = $2 "
        "union all select id from refund where api_key_id = $2)"
    )
    statements, spent = Statements(scene.engine), {}
    for month in reversed(months_around()):
        if month.from_at > datetime.now(UTC):
            continue
        whole = await statements.read(Whose(scene.account.id), month)
        parts = [await statements.read(Whose(scene.account.id, key.id), month) for key in (scene.key, other)]
        for key, part in zip((scene.key, other), parts, strict=True):
            before = await ledger_sum(scene, f"{of_key} and at < $3", key.id, month.from_at)
            after = await ledger_sum(scene, f"{of_key} and at < $3", key.id, month.to_at)
            assert (part.opening_nanos, part.closing_nanos) == (before, after)
            assert part.opening_nanos - part.charge_nanos + part.refund_nanos == part.closing_nanos
            assert (part.top_up_nanos, part.correction_nanos) == (0, 0)
            assert sum(charge.amount_nanos for charge in part.charges) == part.charge_nanos
            assert part.days[-1].closing_nanos == part.closing_nanos
            assert {booking.kind for booking in part.bookings} <= {"refund"}
            spent[key.id] = -part.closing_nanos
        assert sum(part.charge_nanos for part in parts) == whole.charge_nanos
        assert sum(part.refund_nanos for part in parts) == whole.refund_nanos
        assert "key_id" not in json.loads(msgspec.json.encode(whole)), "or the checksums of the past would be others"
    assert sum(spent.values()) == (await scene.accounts.show(scene.account.id)).spent_nanos
    assert all(spent.values())
    with pytest.raises(NotFound):
        await statements.read(Whose(scene.account.id + 1, other.id), month_of(datetime.now(UTC)))


async def a_statement(scene: Scene) -> Statement:
    scene.account = await scene.accounts.create(NewAccount(name="=Bob & <Söhne>", balance_nanos=10**10))
    scene.key = await scene.keys.create(NewKey(account_id=scene.account.id))
    await settle_a_week(scene, [(scene.account, scene.key)], hours=8, calls=2)
    return await Statements(scene.engine).read(Whose(scene.account.id), month_of(datetime.now(UTC)))


async def test_all_four_forms_hold_the_same_figures(scene: Scene) -> None:
    typst = pytest.importorskip("typst")
    statement = await a_statement(scene)
    sums = {name: getattr(statement, f"{name}_nanos") for name in ("opening", "top_up", "charge", "refund", "closing")}
    rows = list(csv.DictReader(io.StringIO(statement_csv(statement), newline="")))
    told = {row["row"]: nanos(row["amount_usd"]) for row in rows if row["row"] in sums}
    assert told == sums
    assert sum(nanos(row["amount_usd"]) for row in rows if row["row"] == "model") == statement.charge_nanos
    assert sum(nanos(row["amount_usd"]) for row in rows if row["row"] == "day") == statement.charge_nanos
    data = json.loads(msgspec.json.encode(statement))
    assert {name: data[f"{name}_nanos"] for name in sums} == sums
    texts = shown(statement)
    assert {row["amount"] for row in texts["sums"]} == {dollars(amount) for amount in (*sums.values(), 0)}
    assert (await statement_pdf(statement)).startswith(b"%PDF-")
    assert (await statement_pdf(statement, "us-letter")).startswith(b"%PDF-")
    key = await Statements(scene.engine).read(Whose(scene.account.id, scene.key.id), month_of(datetime.now(UTC)))
    assert (await statement_pdf(key)).startswith(b"%PDF-")
    assert [row["amount"] for row in shown(key)["sums"]] == [
        dollars(nanos) for nanos in (-key.opening_nanos, key.charge_nanos, key.refund_nanos, -key.closing_nanos)
    ]
    assert f"key,{key.key_id}," in statement_csv(key)
    assert typst


async def test_a_month_is_provisional_until_its_last_hour_is_closed(scene: Scene) -> None:
    statement = await a_statement(scene)
    assert statement.provisional
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute("update account set created_at = created_at - interval '400 days'")
    await connection.close()
    closer = HourCloser(scene.engine, margin=timedelta(0))
    while await closer.close_next() is not None:
        pass
    statements = Statements(scene.engine)
    past = month_of(datetime.now(UTC)).before.before
    closed = await statements.read(Whose(scene.account.id), past)
    assert not closed.provisional
    assert closed.checksum == (await statements.read(Whose(scene.account.id), past)).checksum
    assert len(await statements.months(Whose(scene.account.id))) >= 13


async def test_months_that_are_none_or_have_not_begun_are_not_found(scene: Scene) -> None:
    for text in ("2026-13", "2026-1", "november", "2026-11-01"):
        with pytest.raises(NotFound):
            read_month(text)
    with pytest.raises(NotFound):
        await Statements(scene.engine).read(Whose(scene.account.id), month_of(datetime.now(UTC)).next)
    with pytest.raises(NotFound):
        await Statements(scene.engine).read(Whose(999), month_of(datetime.now(UTC)))


def test_amounts_are_written_to_the_last_nano() -> None:
    assert dollars(1_240_180_000_000) == "$1,240.18"
    assert dollars(-5) == "-$0.000000005"
    assert dollars(0) == "$0.00"
    assert decimals("1234567.5") == "1,234,567.5"
