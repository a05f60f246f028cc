"""Requests that may go several ways: charged once, at the price of the way that answered, and at no other."""

from collections.abc import AsyncIterator

import pytest

from gateway.contract.events import Step
from gateway.contract.phases import Phases
from gateway.contract.request import Leg, Plan, encode_plan
from gateway.contract.units import Units
from gateway.db.session import slow_engine
from gateway.ledger.open_requests import OpenRequests
from gateway.ledger.steps import RatedStep
from tests.ledger.till import HOLD, Till, ended

COMPANY = pytest.mark.parametrize("company", [0, 4], ids=["alone", "in a batch"])


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        yield made


async def company_of(till: Till, count: int) -> list[str]:
    payer = await till.payer(max(count, 1) * HOLD)
    return [str(await till.admit(payer)) for _ in range(count)]


@COMPANY
async def test_the_way_that_answered_is_charged_and_stands_on_the_usage_row(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD, budget=10 * HOLD)
    request_id = str(await till.admit(payer, 4 * HOLD, pool="gpu", model_id=7, alternatives=(5, 6)))
    others = [ended(one) for one in await company_of(till, company)]
    ending = ended(request_id, 2 * HOLD, price_version_id=6, pool="clouds", model_id=9)
    charged = await till.settlement.settle([*others, ending])
    assert [(row.charge_nanos, row.first) for row in charged if row.id == request_id] == [(2 * HOLD, True)]
    row = await till.db.fetchrow("select * from usage where account_id = $1", payer[0])
    assert (row["pool"], row["model_id"], row["price_version_id"]) == ("clouds", 9, 6)
    assert await till.money(payer[0]) == (8 * HOLD, 0, 2 * HOLD)
    rollup = await till.db.fetchrow("select * from usage_rollup where account_id = $1", payer[0])
    assert (rollup["model_id"], rollup["charge_nanos"]) == (9, 2 * HOLD)
    assert await till.count("request_way") == 0
    assert await till.broken_books() == []


@COMPANY
async def test_a_price_that_was_not_pinned_charges_nothing(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, 4 * HOLD, price_version_id=4, alternatives=(5,)))
    others = [ended(one) for one in await company_of(till, company)]
    charged = await till.settlement.settle([*others, ended(request_id, price_version_id=6)])
    assert [(row.mismatch, row.price_version_id) for row in charged if row.id == request_id] == [(True, 4)]
    assert await till.money(payer[0]) == (6 * HOLD, 4 * HOLD, 0)
    await till.settlement.settle([ended(request_id, HOLD, price_version_id=5)])
    assert await till.money(payer[0]) == (9 * HOLD, 0, HOLD)
    assert await till.broken_books() == []


async def test_two_ways_that_both_answer_are_charged_once(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, 4 * HOLD, price_version_id=4, alternatives=(5,)))
    first = ended(request_id, HOLD, price_version_id=5, pool="clouds", attempt=2)
    second = ended(request_id, 3 * HOLD, price_version_id=4, attempt=1)
    await till.settlement.settle([first])
    (charged,) = await till.settlement.settle([second])
    assert (charged.charge_nanos, charged.price_version_id, charged.first) == (HOLD, 5, False)
    assert await till.money(payer[0]) == (9 * HOLD, 0, HOLD)


async def test_the_charge_is_never_above_the_hold_whichever_way_it_went(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, HOLD, alternatives=(5,)))
    (charged,) = await till.settlement.settle([ended(request_id, 7 * HOLD, price_version_id=5, pool="clouds")])
    assert charged.charge_nanos == HOLD


async def test_the_plan_of_a_kept_request_is_given_to_whoever_puts_it_back(till: Till) -> None:
    payer = await till.payer(10 * HOLD)
    plan = Plan("own-model", ["gmi"], [Leg("clouds", "other-model", 5, b"\x80", [])])
    kept = str(await till.admit(payer, keep=True, payload=b"\x80", alternatives=(5,), plan=encode_plan(plan)))
    plain = str(await till.admit(payer, keep=True, payload=b"\x80"))
    engine = slow_engine(till.database_url)
    found = {one.id: one.plan for one in await OpenRequests(engine).older_than(0, limit=10)}
    await engine.dispose()
    assert found == {kept: plan, plain: None}


@COMPANY
async def test_what_was_tried_is_kept_with_what_it_cost(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer, alternatives=(5,)))
    units, phases = Units(images=1), Phases(forward_us=9)
    tried = (
        RatedStep(Step("", "m", "", "gpu", "w", 1, "failed", "engine_error", units, phases, detail="no memory"), None),
        RatedStep(
            Step("gmi", "Veo3", "job-1", "clouds", "v", 2, "succeeded", "done", units, phases, True, 77, True), 77
        ),
    )
    others = [ended(one) for one in await company_of(till, company)]
    await till.settlement.settle([*others, ended(request_id, pool="clouds", model_id=9, steps=tried)])
    rows = await till.db.fetch("select * from attempt order by number")
    assert [(row["name"], row["model"], row["step_id"], row["upstream"], row["estimated"]) for row in rows] == [
        ("", "m", "", False, False),
        ("gmi", "Veo3", "job-1", True, True),
    ]
    assert [(row["cost_nanos"], row["detail"]) for row in rows] == [(None, "no memory"), (77, "")]
