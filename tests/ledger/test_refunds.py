"""Refunds: what was charged is given back at most once, in parts or in full, and the books say so to the nano."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import text

from gateway.contract.ids import new_request_id, uuid_of
from gateway.contract.units import Units
from gateway.errors import Conflict, FaregateError, InvalidRequest, NotFound, Unprocessable
from gateway.ledger.audit import Actor
from gateway.ledger.books.figures import BooksReport
from gateway.ledger.records import Refund
from gateway.ledger.refunds import NewRefund, Refunds
from tests.ledger.scene import USD, Scene

ADA = Actor(name="ada@example.com", role="billing", door="api", request_id="page_1")
CHARGE = 1_000_000
"""What a call of the painter costs: $0.001."""


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    made = await Scene.open(database_url)
    yield made
    await made.close()


@pytest.fixture
def refunds(scene: Scene) -> Refunds:
    return Refunds(scene.engine)


async def give(
    refunds: Refunds, request_id: str, amount: int | None = None, number: UUID | None = None, reason: str = "blurred"
) -> Refund:
    """Give back, as Ada."""
    return await refunds.give(
        NewRefund(request_id=request_id, amount_nanos=amount, reason=reason, transaction_id=number), ADA
    )


def broken(report: BooksReport) -> set[str]:
    """Name the statements that are broken."""
    return {one.statement for one in report.checks if one.verdict == "broken"}


async def rows(scene: Scene, query: str) -> list[tuple[object, ...]]:
    """Read rows."""
    async with scene.engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


async def test_a_refund_moves_from_spent_to_available_and_from_revenue_to_the_account(
    scene: Scene, refunds: Refunds
) -> None:
    request_id = await scene.call("painter")
    before = await scene.accounts.show(scene.account.id)
    made = await give(refunds, request_id, 400_000)
    after = await scene.accounts.show(scene.account.id)
    assert after.available_nanos - before.available_nanos == 400_000
    assert before.spent_nanos - after.spent_nanos == 400_000
    assert (after.held_nanos, after.topped_up_nanos) == (before.held_nanos, before.topped_up_nanos)
    assert (await scene.keys.show(scene.key.id)).used_nanos == CHARGE - 400_000
    assert (made.request_id, made.account_id, made.actor, made.reason) == (
        request_id,
        scene.account.id,
        ADA.name,
        "blurred",
    )
    entries = await rows(
        scene, "select transaction_id, account_id, amount_nanos, reason from ledger_entry where kind = 2"
    )
    assert sorted(entries, key=str) == sorted(
        [(made.id, scene.account.id, 400_000, "blurred"), (made.id, 0, -400_000, "blurred")], key=str
    )
    assert broken(await scene.books.verify(allowed_repeats=0)) == set()


async def test_without_an_amount_all_that_is_left_is_given_back_and_no_more(scene: Scene, refunds: Refunds) -> None:
    request_id = await scene.call("painter")
    await give(refunds, request_id, 1)
    assert (await give(refunds, request_id)).amount_nanos == CHARGE - 1
    told = await refunds.of_request(request_id)
    assert (told.charge_nanos, told.refunded_nanos, told.left_nanos, len(told.refunds)) == (CHARGE, CHARGE, 0, 2)
    for amount in (None, 1):
        with pytest.raises(Unprocessable) as refused:
            await give(refunds, request_id, amount)
        assert refused.value.code == "refund_above_charge"
    assert (await scene.keys.show(scene.key.id)).used_nanos == 0
    assert (await scene.accounts.show(scene.account.id)).available_nanos == 10 * USD
    assert (await scene.books.verify(allowed_repeats=0)).holds


async def test_at_once_no_more_than_the_charge_is_given_back(scene: Scene, refunds: Refunds) -> None:
    """Twenty refunds of a tenth each, side by side: ten are booked and ten refused."""
    request_id = await scene.call("painter")

    async def tenth() -> int:
        try:
            return (await give(refunds, request_id, CHARGE // 10)).amount_nanos
        except Unprocessable:
            return 0

    given = await asyncio.gather(*(tenth() for _ in range(20)))
    assert sum(given) == CHARGE
    assert given.count(0) == 10
    assert (await scene.accounts.show(scene.account.id)).spent_nanos == 0
    assert (await scene.books.verify(allowed_repeats=0)).holds


async def test_a_repeated_transaction_gives_back_once(scene: Scene, refunds: Refunds) -> None:
    request_id, number = await scene.call("painter"), uuid4()
    answers = await asyncio.gather(*(give(refunds, request_id, 10, number) for _ in range(8)))
    assert len({one.id for one in answers}) == 1
    assert (await give(refunds, request_id, None, number)).amount_nanos == 10
    assert (await refunds.of_request(request_id)).refunded_nanos == 10
    assert len(await rows(scene, "select 1 from audit where action = 'request.refund'")) == 1


async def test_a_transaction_of_something_else_is_refused(scene: Scene, refunds: Refunds) -> None:
    first, second, number = await scene.call("painter"), await scene.call("painter"), uuid4()
    await give(refunds, first, 10, number)
    topped_up = uuid4()
    await scene.accounts.top_up(scene.account.id, 5, transaction_id=topped_up)
    for request_id, amount, taken in (
        (first, 11, number),
        (second, 10, number),
        (first, 5, topped_up),
        (first, 10, uuid_of(second)),
    ):
        with pytest.raises(Unprocessable) as refused:
            await give(refunds, request_id, amount, taken)
        assert refused.value.param == "transaction_id"
    assert (await scene.books.verify(allowed_repeats=0)).holds


async def test_the_same_transaction_on_two_accounts_at_once_is_booked_on_one(scene: Scene, refunds: Refunds) -> None:
    first, number = await scene.call("painter"), uuid4()
    other = await Scene.open_beside(scene)
    second = await other.call("painter")

    async def attempt(request_id: str) -> bool:
        try:
            await give(refunds, request_id, 10, number)
        except Unprocessable:
            return False
        return True

    try:
        assert sorted(await asyncio.gather(attempt(first), attempt(second))) == [False, True]
        assert (await scene.books.verify(allowed_repeats=0)).holds
    finally:
        await other.close()


async def test_what_cannot_be_given_back_is_refused_with_the_reason(scene: Scene, refunds: Refunds) -> None:
    free = await scene.call(outcome="failed", units=Units())
    opened = await scene.admit()
    done = await scene.call("painter")
    cases: tuple[tuple[str, int | None, str, type[FaregateError], str], ...] = (
        (new_request_id(), 1, "why", NotFound, "request_not_found"),
        ("req_nonsense", 1, "why", NotFound, "request_not_found"),
        (opened, 1, "why", Conflict, "request_open"),
        (free, None, "why", Unprocessable, "refund_above_charge"),
        (done, CHARGE + 1, "why", Unprocessable, "refund_above_charge"),
        (done, 0, "why", InvalidRequest, "invalid_request"),
        (done, -1, "why", InvalidRequest, "invalid_request"),
        (done, 1, "  ", InvalidRequest, "invalid_request"),
    )
    for request_id, amount, reason, kind, code in cases:
        with pytest.raises(kind) as refused:
            await give(refunds, request_id, amount, reason=reason)
        assert refused.value.code == code
    assert await rows(scene, "select 1 from refund") == []
    assert await rows(scene, "select 1 from audit") == []


async def test_a_refund_gives_back_to_the_limits_of_the_period_that_the_request_was_admitted_in(
    scene: Scene, refunds: Refunds
) -> None:
    request_id = await scene.call("painter")
    limits = f"""insert into spending_limit (owner_kind, owner_id, period, limit_nanos, used_nanos, since) values
        (0, {scene.account.id}, 'day', {USD}, {CHARGE}, now() - interval '1 hour'),
        (1, {scene.key.id}, 'total', {USD}, {CHARGE}, '-infinity'),
        (1, {scene.key.id}, 'month', {USD}, {CHARGE}, now() + interval '1 hour'),
        (1, {scene.account.id + 1000}, 'day', {USD}, {CHARGE}, '-infinity')"""
    connection = await asyncpg.connect(scene.database_url)
    await connection.execute(limits)
    await give(refunds, request_id, 400_000)
    used = await connection.fetch("select used_nanos from spending_limit order by owner_kind, owner_id, period")
    await connection.close()
    assert [one["used_nanos"] for one in used] == [600_000, CHARGE, 600_000, CHARGE]


async def test_each_refund_stands_in_the_audit_log_with_who_gave_it(scene: Scene, refunds: Refunds) -> None:
    request_id = await scene.call("painter")
    made = await give(refunds, request_id, 250_000)
    query = "select actor, role, door, request_id, action, object_kind, object_id, changes from audit"
    changes = {
        "refund_id": [None, str(made.id)],
        "refunded_nanos": [None, 250_000],
        "refundable_nanos": [CHARGE, 750_000],
        "reason": [None, "blurred"],
    }
    assert await rows(scene, query) == [
        (ADA.name, "billing", "api", "page_1", "request.refund", "request", request_id, changes)
    ]


async def test_refunds_are_listed_the_latest_first_page_by_page(scene: Scene, refunds: Refunds) -> None:
    request_id = await scene.call("painter")
    made = [(await give(refunds, request_id, 10 + n)).id for n in range(5)]
    first = await refunds.list(limit=2)
    rest = await refunds.list(account_id=scene.account.id, before=(first[-1].at, first[-1].id))
    assert [one.id for one in (*first, *rest)] == made[::-1]
    assert await refunds.list(account_id=scene.account.id + 1) == []


TAMPERED = (
    ("What was refunded of a request", "update refund set amount_nanos = amount_nanos + 1000000"),
    ("What was refunded of a request", "update refund set amount_nanos = -1"),
    ("What was refunded of a request", "update refund set account_id = account_id + 1"),
    ("What was refunded of a request", "update refund set request_id = gen_random_uuid()"),
    ("Each refund has its ledger", "update refund set amount_nanos = amount_nanos + 1"),
    ("Each refund has its ledger", "delete from refund"),
    ("Each refund has its ledger", "delete from ledger_entry where kind = 2"),
    ("Each refund has its ledger", "update ledger_entry set account_id = -1 where kind = 2 and account_id = 0"),
    ("Each account has spent what the ledger", "delete from ledger_entry where kind = 2"),
    ("Each account has spent what its usage", "delete from refund"),
    ("What accounts have spent", "delete from ledger_entry where kind = 2"),
    ("Each key's use", "update api_key set used_nanos = used_nanos + 1"),
    ("Each key's use", "delete from refund"),
    ("Each account's top-ups are what the ledger", "update ledger_entry set kind = 3 where kind = 2"),
)


async def test_the_books_find_each_refund_that_was_tampered_with(scene: Scene, refunds: Refunds) -> None:
    await give(refunds, await scene.call("painter"), 400_000)
    await scene.tamper()
    for statement, tampering in TAMPERED:
        async with scene.tampering(tampering) as connection:
            found = broken(await scene.books.verify_in(connection, allowed_repeats=0))
        assert any(one.startswith(statement) for one in found), f"{statement!r} holds after: {tampering}"
    assert (await scene.books.verify(allowed_repeats=0)).holds


async def test_refunds_cannot_be_changed(scene: Scene, refunds: Refunds) -> None:
    await give(refunds, await scene.call("painter"), 10)
    connection = await asyncpg.connect(scene.database_url)
    for statement in ("update refund set amount_nanos = 1", "delete from refund", "truncate refund"):
        with pytest.raises(asyncpg.PostgresError, match="append-only"):
            await connection.execute(statement)
    await connection.close()
