"""Settlement: the first end of a request is charged, all its rows in one commit; later ones change nothing."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from typing import Any

import msgspec
import pytest

from gateway.contract.phases import PHASE_NAMES, Phases
from gateway.contract.states import OUTCOMES, REASONS
from gateway.contract.units import UNIT_NAMES, Units
from gateway.ledger.endings import Ending
from gateway.ledger.settlement import Charged
from tests.ledger.till import HOLD, Till, ended, opened

UNITS = Units(*range(1, 11))
PHASES = Phases(*range(100, 107))
COMPANY = pytest.mark.parametrize("company", [0, 4], ids=["alone", "in a batch"])


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


async def settle(till: Till, ending: Ending, company: int) -> list[Charged]:
    """Settle an ending alone, or among others of another account; answers what was said of it."""
    others = []
    if company:
        payer = await till.payer(company * HOLD)
        others = [ended(str(await till.admit(payer))) for _ in range(company)]
    charged = await till.settlement.settle([*others[: company // 2], ending, *others[company // 2 :]])
    return [row for row in charged if row.id == ending.id]


@COMPANY
async def test_a_charge_moves_money_and_writes_every_row(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD, budget=10 * HOLD)
    request_id = str(await till.admit(payer, 4 * HOLD, task="completion", pool="vllm", model_id=7))
    ending = ended(request_id, HOLD, units=UNITS, phases=PHASES, attempt=2, outcome="cancelled", reason="client_gone")
    (charged,) = await settle(till, ending, company)
    assert (charged.charge_nanos, charged.hold_nanos, charged.first) == (HOLD, 4 * HOLD, True)
    assert await till.money(payer[0]) == (9 * HOLD, 0, HOLD)
    assert await till.used(payer[1]) == HOLD
    row = await till.db.fetchrow("select * from usage where account_id = $1", payer[0])
    assert [row[name] for name in UNIT_NAMES] == list(range(1, 11))
    assert [row[f"{name}_us"] for name in PHASE_NAMES] == list(range(100, 107))
    assert (row["hold_nanos"], row["charge_nanos"], row["attempt"], row["worker"]) == (4 * HOLD, HOLD, 2, "w1")
    assert (OUTCOMES[row["outcome"]], REASONS[row["reason"]]) == ("cancelled", "client_gone")
    assert (row["task"], row["pool"], row["model_id"], row["price_version_id"]) == (1, "vllm", 7, 1)
    entries = await till.db.fetch("select * from ledger_entry where transaction_id = $1 order by account_id", row["id"])
    assert [(e["account_id"], e["amount_nanos"], e["kind"]) for e in entries] == [(0, HOLD, 0), (payer[0], -HOLD, 0)]
    rollup = await till.db.fetchrow("select * from usage_rollup where account_id = $1", payer[0])
    assert [rollup[name] for name in UNIT_NAMES] == list(range(1, 11))
    assert (rollup["requests"], rollup["charge_nanos"], rollup["latency_us"]) == (1, HOLD, sum(range(100, 107)))
    assert rollup["hour"] == row["finished_at"].astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    assert await till.broken_books() == []


@COMPANY
async def test_settling_twice_charges_once_and_answers_the_first_charge(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, 4 * HOLD))
    await settle(till, ended(request_id, HOLD, units=UNITS, phases=PHASES), company)
    late = ended(request_id, 3 * HOLD, outcome="failed", reason="worker_lost", attempt=3)
    (charged,) = await settle(till, late, company)
    assert charged == Charged(
        id=request_id,
        charge_nanos=HOLD,
        hold_nanos=4 * HOLD,
        price_version_id=1,
        outcome="succeeded",
        reason="done",
        attempt=1,
        units=UNITS,
        phases=PHASES,
        first=False,
    )
    assert await till.money(payer[0]) == (9 * HOLD, 0, HOLD)
    assert await till.broken_books() == []


@COMPANY
async def test_a_charge_is_never_more_than_the_hold(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    (charged,) = await settle(till, ended(str(await till.admit(payer)), 100 * HOLD), company)
    assert (charged.charge_nanos, charged.hold_nanos) == (HOLD, HOLD)
    assert await till.money(payer[0]) == (9 * HOLD, 0, HOLD)


@COMPANY
async def test_what_costs_nothing_has_its_usage_row_and_its_two_entries_of_zero(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    ending = ended(str(await till.admit(payer)), 0, outcome="failed", reason="engine_error")
    (charged,) = await settle(till, ending, company)
    assert charged.charge_nanos == 0
    assert await till.money(payer[0]) == (10 * HOLD, 0, 0)
    query = "select amount_nanos from ledger_entry join usage on id = transaction_id where usage.account_id = $1"
    assert [row["amount_nanos"] for row in await till.db.fetch(query, payer[0])] == [0, 0]


@COMPANY
async def test_another_price_version_than_the_pinned_one_charges_nothing_and_is_told(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, price_version_id=5))
    (disputed,) = await settle(till, ended(request_id, price_version_id=6), company)
    assert (disputed.mismatch, disputed.first, disputed.price_version_id) == (True, False, 5)
    assert await till.money(payer[0]) == (9 * HOLD, HOLD, 0)
    (agreed,) = await settle(till, ended(request_id, price_version_id=5), company)
    assert (agreed.mismatch, agreed.first, agreed.charge_nanos) == (False, True, HOLD)


@COMPANY
async def test_an_id_that_was_never_admitted_has_no_answer(till: Till, company: int) -> None:
    assert await settle(till, ended(opened((1, 1)).id), company) == []


async def test_one_batch_of_every_kind(till: Till) -> None:
    """New, settled, disputed, unknown and twice: each gets its own answer."""
    payer = await till.payer(10 * HOLD)
    new, old = str(await till.admit(payer)), str(await till.admit(payer))
    disputed, twice = str(await till.admit(payer, price_version_id=9)), str(await till.admit(payer))
    await till.settlement.settle([ended(old, 1)])
    ends = {2: new, 3: old, 4: disputed, 5: twice, 6: twice, 7: opened(payer).id}
    endings = [ended(request_id, charge) for charge, request_id in ends.items()]
    charged = {row.id: row for row in await till.settlement.settle(endings)}
    assert {id_: (row.charge_nanos, row.first, row.mismatch) for id_, row in charged.items()} == {
        new: (2, True, False),
        old: (1, False, False),
        disputed: (0, False, True),
        twice: (5, True, False),
    }
    assert await till.settlement.settle([]) == []
    assert await till.broken_books() == []


@COMPANY
async def test_what_is_kept_moves_from_the_payload_to_the_output(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, keep=True, payload=b"in", metadata={"a": "b"}))
    await settle(till, ended(request_id, output=b"out", detail="a word"), company)
    row = await till.db.fetchrow("select *, expires_at - now() as left from request_output")
    assert (row["output"], row["detail"], msgspec.json.decode(row["metadata"])) == (b"out", "a word", {"a": "b"})
    assert timedelta(days=6, hours=23) < row["left"] <= timedelta(days=7)
    assert await till.count("request_payload") == 0


@COMPANY
async def test_what_failed_keeps_its_word_and_has_no_output(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, keep=True, payload=b"in"))
    await settle(till, ended(request_id, 0, outcome="expired", reason="deadline"), company)
    row = await till.db.fetchrow("select output, detail, metadata from request_output")
    assert tuple(row) == (None, "", None)
    assert await till.count("request_payload") == 0


@COMPANY
async def test_the_output_of_a_request_without_keep_is_not_kept(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    await settle(till, ended(str(await till.admit(payer)), output=b"out"), company)
    assert await till.count("request_output") == 0


@COMPANY
async def test_a_budget_that_was_reset_under_way_does_not_stop_the_charge(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD, budget=10 * HOLD)
    request_id = str(await till.admit(payer))
    await till.db.execute("update api_key set used_nanos = 0")
    await settle(till, ended(request_id, 0), company)
    assert await till.used(payer[1]) == 0
    assert await till.money(payer[0]) == (10 * HOLD, 0, 0)


BAD: list[dict[str, Any]] = [
    {"worker": "w\0"},
    {"detail": "\ud800"},
    {"units": Units(input_tokens=2**64 - 1)},
    {"units": Units(output_tokens=-5)},
    {"attempt": 10**6},
    {"charge_nanos": -1},
]


@COMPANY
@pytest.mark.parametrize("fields", BAD, ids=lambda fields: next(iter(fields)))
async def test_an_end_that_postgres_cannot_store_is_mended_and_its_neighbours_do_not_wait(
    till: Till, fields: dict[str, Any], company: int
) -> None:
    payer = await till.payer(10 * HOLD)
    ending = msgspec.structs.replace(ended(str(await till.admit(payer, keep=True, payload=b"p"))), **fields)
    (charged,) = await settle(till, ending, company)
    assert charged.first
    assert await till.count("open_request") == 0
    assert await till.broken_books() == []


async def test_rollups_are_the_sums_of_usage_by_hour_key_model_task_and_outcome(till: Till) -> None:
    payer = await till.payer(1_000 * HOLD)
    colleague = (payer[0], await till.key(payer[0]))
    endings = []
    for number in range(48):
        caller, task = (payer, colleague)[number % 2], ("chat", "embedding")[number % 4 // 2]
        outcome, reason = (("succeeded", "done"), ("failed", "engine_error"))[number % 5 == 0]
        request_id = str(await till.admit(caller, model_id=number % 3, task=task))
        endings.append(ended(request_id, number, units=Units(number, pixels=7), outcome=outcome, reason=reason))
    await till.settlement.settle(endings[:1])
    await till.settlement.settle(endings[1:40])
    await asyncio.gather(*(till.settlement.settle([ending]) for ending in endings[40:]))
    by = "account_id, api_key_id, model_id, task, outcome"
    sums = f"{by}, count(*), sum(charge_nanos), sum(input_tokens), sum(pixels), sum(queue_us + forward_us)"
    rolled = f"{by}, sum(requests), sum(charge_nanos), sum(input_tokens), sum(pixels), sum(latency_us)"
    expected = await till.db.fetch(f"select {sums} from usage group by {by} order by {by}")
    found = await till.db.fetch(f"select {rolled} from usage_rollup group by {by} order by {by}")
    assert [tuple(row) for row in found] == [tuple(row) for row in expected]
    assert len(found) > 10
    assert await till.broken_books() == []
