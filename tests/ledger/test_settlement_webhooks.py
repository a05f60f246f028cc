"""What settlement writes beside the charge: events of webhooks, and the steps of workflows, once and in one commit."""

from collections.abc import AsyncIterator
from uuid import UUID

import msgspec
import pytest

from gateway.contract.events import Step
from gateway.contract.ids import uuid_of
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.db.session import slow_engine
from gateway.ledger.endings import Ending
from gateway.ledger.open_requests import OpenRequests
from gateway.ledger.settlement import Charged
from gateway.ledger.steps import RatedStep
from tests.ledger.till import HOLD, Till, ended

URL = "https://Receiver.example:8443/hook?x=1"
COMPANY = pytest.mark.parametrize("company", [0, 4], ids=["alone", "in a batch"])


@pytest.fixture
async def till(module_database_url: str) -> AsyncIterator[Till]:
    async with Till(module_database_url, empty=True) as made:
        await made.db.execute("truncate webhook_event, webhook_delivery")
        yield made


async def settle(till: Till, ending: Ending, company: int) -> list[Charged]:
    """Settle an ending alone, or among others of another account that are kept and have no webhook."""
    others = []
    if company:
        payer = await till.payer(company * HOLD)
        others = [ended(str(await till.admit(payer, keep=True, payload=b"p"))) for _ in range(company)]
    charged = await till.settlement.settle([*others[: company // 2], ending, *others[company // 2 :]])
    return [row for row in charged if row.id == ending.id]


async def told(till: Till) -> list[tuple[UUID, int, int, str, str]]:
    rows = await till.db.fetch("select request_id, kind, account_id, url, host from webhook_event order by kind")
    return [tuple(row) for row in rows]


@COMPANY
async def test_the_end_of_a_request_with_a_webhook_is_written_down_with_its_charge(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    asked = {"keep": True, "payload": b"p", "webhook": URL, "webhook_events": ("started", "completed")}
    request_id = str(await till.admit(payer, **asked))
    ending = ended(request_id)
    await settle(till, ending, company)
    await settle(till, ending, company)
    event = (uuid_of(request_id), payer[0], URL, "receiver.example:8443")
    assert await told(till) == [(event[0], 0, *event[1:]), (event[0], 2, *event[1:])]
    assert await till.db.fetchval("select webhook from request_output where id = $1", event[0]) == URL


@COMPANY
async def test_nothing_is_told_that_was_not_asked_for_or_did_not_happen(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    only_started = str(
        await till.admit(payer, keep=True, payload=b"p", webhook=URL, webhook_events=("started", "progress"))
    )
    await settle(till, ended(only_started, 0, worker="", attempt=0, outcome="expired", reason="deadline"), company)
    await settle(till, ended(str(await till.admit(payer, keep=True, payload=b"p"))), company)
    assert await told(till) == []
    assert await till.db.fetchval("select count(*) from request_output where webhook is not null") == 0


def a_step(name: str, cost: int | None) -> RatedStep:
    phases = Phases(queue_us=5, forward_us=7_000)
    step = Step(name, "tiny-" + name, "req_x", "pool", "w2", 2, "succeeded", "done", Units(images=3), phases)
    return RatedStep(step, cost)


@COMPANY
async def test_the_steps_of_a_workflow_are_written_with_their_costs_and_charged_to_nobody(
    till: Till, company: int, module_database_url: str
) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer))
    steps = (a_step("speech", 250), a_step("video", None))
    for _ in range(2):
        await settle(till, ended(request_id, HOLD, steps=steps), company)
    assert await till.money(payer[0]) == (9 * HOLD, 0, HOLD)
    engine = slow_engine(module_database_url)
    record = await OpenRequests(engine).record(payer[0], request_id)
    await engine.dispose()
    assert record is not None
    assert record.steps == steps
    assert await till.broken_books() == []


@COMPANY
async def test_a_step_that_postgres_cannot_store_is_mended(till: Till, company: int) -> None:
    payer = await till.payer(10 * HOLD)
    request_id = str(await till.admit(payer))
    bad = msgspec.structs.replace(a_step("speech", 1).step, name="a\0b", attempt=10**6, units=Units(images=2**64 - 1))
    (charged,) = await settle(till, ended(request_id, steps=(RatedStep(bad, 1),)), company)
    assert charged.first
    row = await till.db.fetchrow("select name, attempt, images from attempt where request_id = $1", uuid_of(request_id))
    assert tuple(row) == ("a\ufffdb", 2**15 - 1, 2**53)
