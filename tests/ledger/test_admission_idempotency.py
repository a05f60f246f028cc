"""Idempotency keys: one request, however often it is sent."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import Conflict, Unauthorized, Unprocessable
from gateway.ledger.admission import Replay
from tests.ledger.till import HOLD, Till, ended

BODY, OTHER_BODY = b"b" * 32, b"o" * 32


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


async def send(till: Till, payer: tuple[int, int], *, body: bytes = BODY, key: str = "k", hold: int = HOLD) -> Any:
    return await till.admit(payer, hold, idempotency_key=key, body_hash=body, payload=b"p", keep=True)


@pytest.mark.parametrize("company", [0, 3])
async def test_the_table_of_idempotency(till: Till, company: int) -> None:
    """Same body: a conflict in flight, then a replay. Other body: refused. Other account or API key: independent."""
    payer, stranger = await till.payer(10 * HOLD), await till.payer(10 * HOLD)
    colleague = (payer[0], await till.key(payer[0]))
    rich = await till.payer(100 * HOLD)

    async def beside_others(call: Any) -> Any:
        others = [till.admit(rich) for _ in range(company)]
        return (await asyncio.gather(call, *others, return_exceptions=True))[0]

    first = await beside_others(send(till, payer))
    in_flight = await beside_others(send(till, payer))
    assert isinstance(in_flight, Conflict)
    assert (in_flight.code, in_flight.request_id) == ("idempotency_in_flight", first)
    mismatch = await beside_others(send(till, payer, body=OTHER_BODY))
    assert isinstance(mismatch, Unprocessable)
    assert (mismatch.code, mismatch.request_id) == ("idempotency_mismatch", first)
    await till.settlement.settle([ended(first)])
    assert await beside_others(send(till, payer)) == Replay(first)
    assert isinstance(await beside_others(send(till, payer, body=OTHER_BODY)), Unprocessable)
    for other in (stranger, colleague):
        assert isinstance(await beside_others(send(till, other)), str)
    assert isinstance(await beside_others(send(till, payer, key="k2")), str)
    assert await till.broken_books() == []


async def test_of_calls_with_one_key_at_once_one_is_admitted(till: Till) -> None:
    payer = await till.payer(100 * HOLD)
    ends = await asyncio.gather(*(send(till, payer) for _ in range(20)), return_exceptions=True)
    admitted = [end for end in ends if isinstance(end, str)]
    assert len(admitted) == 1
    assert {end.request_id for end in ends if isinstance(end, Conflict)} == set(admitted)
    assert await till.money(payer[0]) == (99 * HOLD, HOLD, 0)


async def test_two_gateways_admit_one_key_once(till: Till) -> None:
    payer = await till.payer(100 * HOLD)
    async with Till(till.database_url) as other:
        for number in range(20):
            calls = [send(one, payer, key=f"k{number}") for one in (till, other, till, other)]
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(end, str) for end in ends) == 1
            assert sum(isinstance(end, Conflict) for end in ends) == 3
    assert await till.money(payer[0]) == (80 * HOLD, 20 * HOLD, 0)


async def test_a_replay_needs_no_money(till: Till) -> None:
    payer = await till.payer(HOLD)
    first = await send(till, payer)
    await till.settlement.settle([ended(first, HOLD)])
    assert await till.money(payer[0]) == (0, 0, HOLD)
    assert await send(till, payer) == Replay(first)


async def test_a_replay_needs_a_live_key(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    await till.settlement.settle([ended(await send(till, payer))])
    await till.db.execute("update api_key set revoked_at = now()")
    with pytest.raises(Unauthorized):
        await send(till, payer)


async def test_a_call_that_was_refused_does_not_take_its_key(till: Till) -> None:
    payer = await till.payer(HOLD)
    ends = await asyncio.gather(send(till, payer, hold=2 * HOLD), return_exceptions=True)
    assert not isinstance(ends[0], str)
    assert isinstance(await send(till, payer, body=OTHER_BODY), str)
