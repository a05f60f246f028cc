"""Admission: a hold for each request that can be paid, and nothing left behind by one that cannot."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from gateway.errors import FaregateError, InvalidRequest, PaymentRequired, Unauthorized
from tests.ledger.till import HOLD, Till, opened


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


async def outcomes(*calls: Any) -> Counter[str]:
    """Run calls at once; count how they ended, by error code."""
    ends = await asyncio.gather(*calls, return_exceptions=True)
    return Counter(end.code if isinstance(end, FaregateError) else type(end).__name__ for end in ends)


async def test_of_200_parallel_calls_with_funds_for_10_exactly_10_are_admitted(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    assert await outcomes(*(till.admit(payer) for _ in range(200))) == {"str": 10, "insufficient_balance": 190}
    assert await till.money(payer[0]) == (0, 10 * HOLD, 0)
    assert await till.count("open_request") == 10
    assert await till.broken_books() == []


async def test_of_200_parallel_calls_with_a_budget_for_10_exactly_10_are_admitted(till: Till) -> None:
    payer = await till.payer(1_000 * HOLD, budget=10 * HOLD + HOLD - 1)
    assert await outcomes(*(till.admit(payer) for _ in range(200))) == {"str": 10, "budget_exceeded": 190}
    assert await till.used(payer[1]) == 10 * HOLD
    assert await till.broken_books() == []


async def test_two_keys_of_an_account_share_its_balance_and_not_their_budgets(till: Till) -> None:
    account, first = await till.payer(10 * HOLD, budget=3 * HOLD)
    second = await till.key(account)
    ends = await outcomes(*(till.admit((account, key)) for key in [first, second] * 50))
    assert ends["str"] == 10
    assert await till.used(first) <= 3 * HOLD
    assert await till.money(account) == (0, 10 * HOLD, 0)


async def test_a_postpaid_account_goes_down_to_its_credit_limit(till: Till) -> None:
    payer = await till.payer(HOLD, limit=4 * HOLD)
    assert await outcomes(*(till.admit(payer) for _ in range(20))) == {"str": 5, "insufficient_balance": 15}
    assert await till.money(payer[0]) == (-4 * HOLD, 5 * HOLD, 0)


@pytest.mark.parametrize("company", [1, 5])
async def test_the_limit_is_exact_to_the_nano(till: Till, company: int) -> None:
    payer, rich = await till.payer(HOLD), await till.payer(HOLD * 100)
    others = [till.admit(rich) for _ in range(company - 1)]
    assert (await outcomes(till.admit(payer, HOLD + 1), *others))["insufficient_balance"] == 1
    others = [till.admit(rich) for _ in range(company - 1)]
    assert await outcomes(till.admit(payer, HOLD), *others) == {"str": company}


@pytest.mark.parametrize("company", [1, 5])
async def test_what_costs_nothing_runs_on_an_empty_account_with_an_exhausted_budget(till: Till, company: int) -> None:
    account = await till.account(0)
    key = await till.key(account, budget=5, used_nanos="7")
    assert await outcomes(*(till.admit((account, key), 0) for _ in range(company))) == {"str": company}


async def test_a_huge_request_does_not_refuse_its_neighbours(till: Till) -> None:
    payer = await till.payer(20 * HOLD)
    calls = [till.admit(payer) for _ in range(6)]
    calls[2:2] = [till.admit(payer, 10**15), till.admit(payer, 20 * HOLD)]
    assert await outcomes(*calls) == {"str": 6, "insufficient_balance": 2}


async def test_a_request_that_fits_only_alone_does_not_hold_up_what_fits_beside_it(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    holds = [HOLD] * 6 + [5 * HOLD] + [HOLD] * 4
    assert await outcomes(*(till.admit(payer, hold) for hold in holds)) == {"str": 10, "insufficient_balance": 1}
    assert await till.money(payer[0]) == (0, 10 * HOLD, 0)


async def test_the_first_of_two_that_exclude_each_other_is_admitted(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    first, second = await asyncio.gather(
        till.admit(payer, 7 * HOLD), till.admit(payer, 6 * HOLD), return_exceptions=True
    )
    assert isinstance(first, str)
    assert isinstance(second, PaymentRequired)


STRANGERS = {
    "suspended account": {"account": {"suspended_at": "now()"}},
    "revoked key": {"key": {"revoked_at": "now()"}},
    "expired key": {"key": {"expires_at": "now() - interval '1 second'"}},
}


@pytest.mark.parametrize("company", [1, 5])
@pytest.mark.parametrize("case", [*STRANGERS, "unknown account", "unknown key", "another account's key"])
async def test_who_may_not_call_any_more_is_refused_in_the_same_words(till: Till, case: str, company: int) -> None:
    rich = await till.payer(100 * HOLD)
    fields: dict[str, Any] = STRANGERS.get(case, {})
    account = await till.account(100 * HOLD, **fields.get("account", {}))
    key = await till.key(account, **fields.get("key", {}))
    payer = {
        "unknown account": (10**9, key),
        "unknown key": (account, 10**9),
        "another account's key": (account, rich[1]),
    }.get(case, (account, key))
    others = [till.admit(rich) for _ in range(company - 1)]
    refused, *admitted = await asyncio.gather(till.admit(payer), *others, return_exceptions=True)
    assert isinstance(refused, Unauthorized)
    assert refused.message == "No valid API key was given. Send it as 'Authorization: Bearer KEY'."
    assert len(admitted) == company - 1 == await till.count("open_request")
    assert await till.money(account) == (100 * HOLD, 0, 0)
    assert await till.broken_books() == []


async def test_a_key_that_will_expire_is_good_until_then(till: Till) -> None:
    account = await till.account(10 * HOLD)
    key = await till.key(account, expires_at="now() + interval '1 hour'")
    assert await outcomes(till.admit((account, key)), till.admit((account, key))) == {"str": 2}


async def test_refusals_leave_no_row_at_all(till: Till) -> None:
    payer = await till.payer(0)
    fields = {"idempotency_key": "k", "payload": b"p", "keep": True}
    assert await outcomes(till.admit(payer, **fields), till.admit(payer)) == {"insufficient_balance": 2}
    for table in ("open_request", "request_payload", "idempotency", "usage", "ledger_entry"):
        assert await till.count(table) == 0


async def test_what_is_kept_of_an_asynchronous_call(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    metadata = {"project": "Ω", "line": "a\\u0000b"}
    await till.admit(payer, keep=True, payload=b"\x00input", metadata=metadata, pool="vllm", task="embedding")
    row = await till.db.fetchrow("select * from open_request join request_payload using (id)")
    assert (row["payload"], msgspec.json.decode(row["metadata"])) == (b"\x00input", metadata)
    assert (row["pool"], row["task"], row["keep"], row["gateway"]) == ("vllm", 2, True, "test")
    assert (row["deadline_at"] - row["created_at"]).total_seconds() == 60


async def test_admission_stamps_when_a_key_was_last_used(till: Till) -> None:
    one, two = await till.payer(HOLD), await till.payer(HOLD)
    await till.admit(one)
    await asyncio.gather(till.admit(two, 0), till.admit(two, 0))
    assert await till.db.fetchval("select count(*) from api_key where last_used_at > now() - interval '1 hour'") == 2


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"idempotency_key": "a\0b"}, "Idempotency-Key"), ({"metadata": {"a": "\0"}, "payload": b""}, "metadata")],
)
async def test_text_that_postgres_cannot_store_is_refused_with_its_field(
    till: Till, fields: dict[str, Any], param: str
) -> None:
    payer = await till.payer(10 * HOLD)
    with pytest.raises(InvalidRequest) as refused:
        await till.admit(payer, **fields)
    assert refused.value.param == param


async def test_a_price_beyond_all_money_is_refused(till: Till) -> None:
    payer = await till.payer(HOLD)
    assert await outcomes(till.admit(payer, 2**63), till.admit(payer, 4 * 10**18), till.admit(payer)) == {
        "insufficient_balance": 2,
        "str": 1,
    }


async def test_one_that_cannot_be_stored_fails_alone(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    twin = opened(payer)
    ends = await asyncio.gather(
        *(till.admission.admit(one) for one in (twin, opened(payer), twin, opened(payer))), return_exceptions=True
    )
    assert [end == () for end in ends] == [True, True, False, True]
    assert await till.count("open_request") == 3
    assert await till.broken_books() == []


async def test_small_and_large_batches_charge_alike(till: Till) -> None:
    """From one request alone to more than a batch takes, the same holds are set aside."""
    payer = await till.payer(10_000 * HOLD)
    admitted = 0
    for number in (1, 2, 127, 128, 129, 300):
        assert await outcomes(*(till.admit(payer) for _ in range(number))) == {"str": number}
        admitted += number
        assert (await till.money(payer[0]))[1] == admitted * HOLD
    assert await till.broken_books() == []
