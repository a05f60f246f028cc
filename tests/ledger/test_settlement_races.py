"""Money under concurrency: what the locks and the order of statements are for."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import Conflict, PaymentRequired, Unavailable
from gateway.ledger.settlement import Settlement
from tests.ledger.till import HOLD, Till, ended

END_WAITING = (
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'faregate settlement'"
    " and datname = current_database() and wait_event_type = 'Lock'"
)


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


async def test_admission_beside_settlement_on_nearly_empty_accounts_never_meets_a_check(till: Till) -> None:
    """Trap 1: judged against a row that a settlement changes meanwhile, a batch would be refused by the CHECK."""
    began = time.monotonic()
    draw = random.Random(7)
    payers = [await till.payer(3 * HOLD, budget=10**15) for _ in range(8)]
    refused = admitted = 0

    def enough() -> bool:
        past_s = time.monotonic() - began
        return (past_s > 2.0 and min(refused, admitted) > 50) or past_s > 120

    async def caller() -> None:
        nonlocal refused, admitted
        while not enough():
            try:
                request_id = await till.admit(draw.choice(payers), draw.randint(0, 2 * HOLD))
            except PaymentRequired:
                refused += 1
                await asyncio.sleep(0)
                continue
            admitted += 1
            await till.settlement.settle([ended(str(request_id), 0)])

    await asyncio.gather(*(caller() for _ in range(32)))
    assert min(refused, admitted) > 50
    assert await till.count("open_request") == 0
    assert await till.broken_books() == []


async def test_settlers_and_gateways_in_every_order_meet_no_deadlock_and_charge_once(till: Till) -> None:
    """Three settlers get the same ends in different orders while two gateways admit for the same accounts."""
    draw = random.Random(8)
    payers = [await till.payer(10**9) for _ in range(12)]
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(Till(till.database_url)) for _ in range(2)]
        for _ in range(12):
            asked = [draw.choice([till, others[0]]).admit(draw.choice(payers)) for _ in range(60)]
            ids = [str(request_id) for request_id in await asyncio.gather(*asked)]
            more = [draw.choice([till, others[0]]).admit(draw.choice(payers)) for _ in range(60)]
            rounds = [one.settlement.settle([ended(id_) for id_ in draw.sample(ids, 45)]) for one in [till, *others]]
            *charged, _ = await asyncio.gather(*rounds, asyncio.gather(*more))
            firsts = [row.id for rows in charged for row in rows if row.first]
            assert len(firsts) == len(set(firsts)) == len({row.id for rows in charged for row in rows})
            assert all(len(rows) == 45 for rows in charged)
    assert await till.db.fetchval("select deadlocks from pg_stat_database where datname = current_database()") == 0
    assert await till.broken_books() == []


async def test_a_settlement_that_is_broken_off_is_a_503_and_its_repeat_charges_once(till: Till) -> None:
    payer = await till.payer(100 * HOLD)
    ids = [str(await till.admit(payer)) for _ in range(10)]
    async with Till(till.database_url) as blocker, blocker.db.transaction():
        await blocker.db.execute("select from account for update")
        settling = asyncio.create_task(till.settlement.settle([ended(id_) for id_ in ids]))
        async with asyncio.timeout(60):
            while not await till.db.fetch(END_WAITING):
                await asyncio.sleep(0.01)
        with pytest.raises(Unavailable):
            await settling
    charged = await till.settlement.settle([ended(id_) for id_ in ids])
    assert [row.first for row in charged] == [True] * 10
    assert await till.money(payer[0]) == (90 * HOLD, 0, 10 * HOLD)
    assert await till.broken_books() == []


async def test_an_unknown_commit_is_found_out_by_the_repeat(till: Till) -> None:
    """Trap 3: the commit went through, the word of it was lost. The repeat answers the charge, not nothing."""
    payer = await till.payer(100 * HOLD)
    request_id = str(await till.admit(payer))
    forgetful = Settlement(till.database_url)
    await forgetful.settle([ended(request_id, 7)])
    await forgetful.close()
    (charged,) = await till.settlement.settle([ended(request_id, 9)])
    assert (charged.first, charged.charge_nanos) == (False, 7)


ACTIONS = st.one_of(
    st.tuples(st.just("admit"), st.integers(0, 3), st.integers(0, 4 * HOLD)),
    st.tuples(st.just("settle"), st.integers(0, 50), st.integers(0, 6 * HOLD)),
    st.tuples(st.just("dispute"), st.integers(0, 50), st.integers(0, 6 * HOLD)),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(st.lists(ACTIONS, min_size=1, max_size=12), min_size=1, max_size=8))
async def test_the_books_hold_after_any_interleaving(till: Till, rounds: list[list[tuple[str, int, int]]]) -> None:
    """I2 to I6, I8 and I13, whatever is admitted, settled, settled again or disputed, at once and in any order."""
    payers = [
        await till.payer(5 * HOLD),
        await till.payer(20 * HOLD, budget=7 * HOLD),
        await till.payer(HOLD, limit=6 * HOLD),
        await till.payer(0),
    ]
    admitted: list[str] = []

    async def act(kind: str, which: int, nanos: int) -> None:
        if kind == "admit":
            try:
                admitted.append(str(await till.admit(payers[which], nanos)))
            except PaymentRequired:
                return
        elif admitted:
            version = 1 if kind == "settle" else 2
            request_id = admitted[which % len(admitted)]
            for row in await till.settlement.settle([ended(request_id, nanos, price_version_id=version)]):
                assert 0 <= row.charge_nanos <= row.hold_nanos

    for actions in rounds:
        await asyncio.gather(*(act(*action) for action in actions))
        assert await till.broken_books() == []
    await till.settlement.settle([ended(request_id) for request_id in admitted])
    held = await till.db.fetchval("select sum(held_nanos) from account")
    assert (held, await till.count("open_request")) == (0, 0)
    assert await till.broken_books() == []


async def test_a_long_backlog_costs_a_batch_nothing(till: Till) -> None:
    """A plan with a join in it, made while the tables were empty, would read the whole backlog for every batch."""
    payer = await till.payer(10**9)

    async def batch(first: int) -> None:
        fields = [{"idempotency_key": f"k{n}", "payload": b"p", "keep": True} for n in range(first, first + 30)]
        calls = [till.admit(payer, **fields[n]) for n in range(30)]
        ids = [str(request_id) for request_id in await asyncio.gather(*calls)]
        repeats = await asyncio.gather(*(till.admit(payer, **fields[n]) for n in range(30)), return_exceptions=True)
        assert [type(end) for end in repeats] == [Conflict] * 30
        await till.settlement.settle([ended(id_) for id_ in ids])

    await till.db.execute("vacuum analyze open_request, request_payload, idempotency")
    await batch(0)
    await till.db.execute(_BACKLOG)
    before = await _index_rows_read(till)
    for number in range(1, 6):
        await batch(30 * number)
    await till.admission.close()
    await till.settlement.close()
    assert await _index_rows_read(till) - before < 10_000


_BACKLOG = """
insert into open_request select ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 1, 1, 0, now(), now(),
  1, 1, 0, true, 'p', 'g' from generate_series(1, 5000) i;
insert into request_payload select id, 'p' from open_request;
insert into idempotency select 1, 1, i::text, gen_random_uuid(), 'h' from generate_series(1, 5000) i;
"""


async def _index_rows_read(till: Till) -> int:
    """Count the index entries read so far, once the sessions' own counts have arrived."""
    tables = "relname in ('open_request', 'request_payload', 'idempotency')"
    query = f"select sum(idx_tup_read)::bigint from pg_stat_user_indexes where {tables}"
    await asyncio.sleep(1.2)
    number: int = await till.db.fetchval(query)
    return number
