"""Accounts: every cent that comes in is booked twice, and none goes out that is not there."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.accounts import MOST_NANOS
from gateway.db.session import slow_engine
from gateway.errors import Conflict, InvalidRequest, NotFound, Unavailable, Unprocessable
from gateway.ledger.accounts import Accounts, NewAccount

USD = 10**9


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    made = slow_engine(database_url)
    yield made
    await made.dispose()


@pytest.fixture
def accounts(engine: AsyncEngine) -> Accounts:
    return Accounts(engine)


async def entries(engine: AsyncEngine) -> list[tuple[int, int, int, str | None]]:
    """Give account, amount, kind and reason of every ledger entry, in their order."""
    async with engine.connect() as connection:
        rows = await connection.execute(text("select account_id, amount_nanos, kind, reason from ledger_entry"))
        return [tuple(row) for row in rows]


async def test_an_opening_balance_is_a_top_up_of_two_entries_that_sum_to_zero(
    accounts: Accounts, engine: AsyncEngine
) -> None:
    made = await accounts.create(NewAccount(name="Ada", balance_nanos=5 * USD))
    assert (made.available_nanos, made.topped_up_nanos, made.held_nanos, made.spent_nanos) == (5 * USD, 5 * USD, 0, 0)
    assert await entries(engine) == [(made.id, 5 * USD, 1, "opening balance"), (-1, -5 * USD, 1, "opening balance")]


async def test_an_account_without_a_balance_leaves_no_entry(accounts: Accounts, engine: AsyncEngine) -> None:
    assert (await accounts.create(NewAccount(name="Ada"))).available_nanos == 0
    assert await entries(engine) == []


async def test_a_name_is_taken_once(accounts: Accounts) -> None:
    await accounts.create(NewAccount(name="Ada"))
    with pytest.raises(Conflict) as refused:
        await accounts.create(NewAccount(name="Ada", balance_nanos=USD))
    assert refused.value.param == "name"
    assert [one.name for one in await accounts.list()] == ["Ada"]


async def test_top_ups_add_up_when_they_come_at_once(accounts: Accounts) -> None:
    made = await accounts.create(NewAccount(name="Ada"))
    await asyncio.gather(*(accounts.top_up(made.id, USD) for _ in range(20)))
    assert (await accounts.show(made.id)).available_nanos == 20 * USD


async def test_a_repeated_transaction_is_booked_once(accounts: Accounts, engine: AsyncEngine) -> None:
    made = await accounts.create(NewAccount(name="Ada"))
    transaction_id = uuid4()
    for _ in range(2):
        shown = await accounts.top_up(made.id, USD, transaction_id=transaction_id)
    assert shown.available_nanos == USD
    assert len(await entries(engine)) == 2
    with pytest.raises(Unprocessable):
        await accounts.top_up(made.id, 2 * USD, transaction_id=transaction_id)


async def test_an_adjustment_takes_back_what_is_there_and_no_more(accounts: Accounts, engine: AsyncEngine) -> None:
    made = await accounts.create(NewAccount(name="Ada", balance_nanos=USD))
    shown = await accounts.adjust(made.id, -USD // 4, reason="paid twice")
    assert (shown.available_nanos, shown.topped_up_nanos) == (USD * 3 // 4, USD * 3 // 4)
    with pytest.raises(Unprocessable) as refused:
        await accounts.adjust(made.id, -USD, reason="all of it")
    assert refused.value.code == "balance_too_low"
    assert [entry[1] for entry in await entries(engine)] == [USD, -USD, -USD // 4, USD // 4]
    assert await accounts.show(made.id) == shown


async def test_an_account_keeps_media_for_a_time_of_its_own(accounts: Accounts) -> None:
    made = await accounts.create(NewAccount(name="Ada"))
    assert made.keep_media_s is None
    assert (await accounts.set_retention(made.id, 3600)).keep_media_s == 3600
    assert (await accounts.set_retention(made.id, None)).keep_media_s is None
    for wrong in (0, -1, 2**40):
        with pytest.raises(InvalidRequest):
            await accounts.set_retention(made.id, wrong)
    with pytest.raises(NotFound):
        await accounts.set_retention(made.id + 1, 3600)


async def test_a_postpaid_account_goes_down_to_its_credit_limit(accounts: Accounts) -> None:
    made = await accounts.create(NewAccount(name="Ada", kind="postpaid", credit_limit_nanos=USD))
    assert (await accounts.adjust(made.id, -USD, reason="moved from another system")).available_nanos == -USD
    with pytest.raises(Unprocessable):
        await accounts.adjust(made.id, -1, reason="one more")
    with pytest.raises(Unprocessable):
        await accounts.set_credit_limit(made.id, USD - 1)
    assert (await accounts.set_credit_limit(made.id, 2 * USD)).credit_limit_nanos == 2 * USD


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (NewAccount(name=" "), "name"),
        (NewAccount(name="x", balance_nanos=-1), "balance_nanos"),
        (NewAccount(name="x", balance_nanos=MOST_NANOS + 1), "balance_nanos"),
        (NewAccount(name="x", credit_limit_nanos=1), "credit_limit_nanos"),
        (NewAccount(name="x", kind="postpaid", credit_limit_nanos=-1), "credit_limit_nanos"),
    ],
)
async def test_refuses_a_wrong_account_by_its_field(accounts: Accounts, new: NewAccount, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await accounts.create(new)
    assert refused.value.param == param


async def test_refuses_amounts_that_money_is_not_counted_in(accounts: Accounts) -> None:
    made = await accounts.create(NewAccount(name="Ada", balance_nanos=USD))
    for wrong in (0, -1, MOST_NANOS, 2**64):
        with pytest.raises(InvalidRequest):
            await accounts.top_up(made.id, wrong)
    for wrong in (0, -(2**64)):
        with pytest.raises(InvalidRequest):
            await accounts.adjust(made.id, wrong, reason="x")
    with pytest.raises(InvalidRequest) as refused:
        await accounts.adjust(made.id, 1, reason=" ")
    assert refused.value.param == "reason"
    assert (await accounts.show(made.id)).available_nanos == USD


async def test_an_unknown_account_is_not_found(accounts: Accounts) -> None:
    for call in (accounts.show(99), accounts.top_up(99, 1), accounts.suspend(99), accounts.set_credit_limit(99, 1)):
        with pytest.raises(NotFound):
            await call


async def test_lists_page_by_page(accounts: Accounts) -> None:
    ids = [(await accounts.create(NewAccount(name=f"a{n}"))).id for n in range(3)]
    first = await accounts.list(limit=2)
    assert [one.id for one in first] == ids[:2]
    assert [one.id for one in await accounts.list(after_id=first[-1].id, limit=2)] == ids[2:]


async def test_postgres_away_is_unavailable() -> None:
    engine = slow_engine("postgresql://faregate@127.0.0.1:1/nowhere")
    with pytest.raises(Unavailable):
        await Accounts(engine).show(1)
    await engine.dispose()
