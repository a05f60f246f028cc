"""The pages of requests: the list and its filters, one request with its waterfall and bill, and refunds by form."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from gateway.admin.pages.requests.asked import read_asked
from gateway.admin.pages.requests.bill import bill_of
from gateway.admin.pages.requests.tail import to_now
from gateway.admin.pages.requests.waterfall import draw
from gateway.admin.site.period import read_period
from gateway.contract.events import Step
from gateway.contract.ids import uuid_of
from gateway.contract.phases import Phases
from gateway.contract.units import Units
from gateway.ledger.refunds import Refunds
from gateway.ledger.steps import RatedStep
from gateway.pricing.price import PriceComponent, PriceVersion
from gateway.pricing.terms import NO_TERMS
from gateway.reports.request_list import count_new
from gateway.reports.request_story import End, Story
from tests.admin.shop import Shop, open_shop, send

START = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
async def shop(database_url: str) -> AsyncIterator[Shop]:
    async with open_shop(database_url) as opened:
        yield opened


def story(total_us: int, phases: Phases, *steps: RatedStep, attempt: int = 1) -> Story:
    """Make a finished request that took so long."""
    end = End(
        finished_at=START + timedelta(microseconds=total_us),
        outcome="succeeded",
        reason="done",
        charge_nanos=7,
        cost_nanos=3,
        gpu_us=0,
        units=Units(input_tokens=10, output_tokens=7),
        phases=phases,
        attempt=attempt,
        forward_began=True,
        pool="text",
        worker="w1",
        route="text",
    )
    price = PriceVersion(1, 1, (PriceComponent("input_token", 150), PriceComponent("output_token", 785)), START)
    return Story(
        id="req_" + "0" * 32, account_id=1, account="Ada", key_id=1, key="prod", key_prefix="fg_live_abcd",
        model="talker", task="chat", created_at=START, deadline_at=None, hold_nanos=100, price=price, price_door="file",
        price_author="", terms=NO_TERMS, pool="text", read_at=START, end=end, steps=steps,
    )  # fmt: skip


def lost(phases: Phases) -> RatedStep:
    """Make an attempt that lost."""
    step = Step("", "talker", "", "other", "w0", 1, "failed", "engine_error", Units(), phases, detail="no memory")
    return RatedStep(step, 2)


def test_a_waterfall_is_true_to_scale_and_labels_what_is_unaccounted() -> None:
    drawn = draw(story(1_000_000, Phases(queue_us=250_000, forward_us=500_000)))
    (row,) = drawn.rows
    assert [(one.phase, one.x, one.width) for one in row.segments] == [
        ("queue", "0.000%", "25.000%"),
        ("forward", "25.000%", "50.000%"),
        ("unaccounted", "75.000%", "25.000%"),
    ]
    assert drawn.unaccounted_us == 250_000
    assert row.segments[-1].text == "unaccounted 250 ms"
    assert sum(one.us for one in row.segments) == drawn.total_us
    assert [tick.text for tick in drawn.ticks] == ["0 ms", "200 ms", "400 ms", "600 ms", "800 ms", "1.00 s"]


def test_attempts_stand_one_after_another_and_lost_ones_are_marked_with_their_own_cost() -> None:
    drawn = draw(story(1_000_000, Phases(forward_us=300_000), lost(Phases(forward_us=400_000)), attempt=2))
    first, second = drawn.rows
    assert (first.is_lost, first.cost_nanos, first.note) == (True, 2, "failed: no memory")
    assert (second.is_lost, second.segments[0].x) == (False, "40.000%")
    assert second.segments[-1].phase == "unaccounted"
    assert (drawn.unaccounted_us, drawn.over_us) == (300_000, 0)


def test_attempts_that_ran_side_by_side_are_not_squeezed_into_the_whole() -> None:
    drawn = draw(story(1_000_000, Phases(forward_us=700_000), lost(Phases(forward_us=800_000))))
    assert [row.segments[0].x for row in drawn.rows] == ["0.000%", "0.000%"]
    assert [row.segments[0].width for row in drawn.rows] == ["80.000%", "70.000%"]
    assert drawn.over_us == 500_000


def test_a_bill_shows_the_exact_sum_and_the_one_rounding() -> None:
    bill = bill_of(story(1, Phases()))
    assert bill is not None
    assert [(line.unit, line.quantity, line.amount_usd) for line in bill.lines] == [
        ("input token", "10", "0.0000000015"),
        ("output token", "7", "0.000000005495"),
    ]
    assert (bill.exact_usd, bill.charge_nanos, bill.is_capped) == ("0.000000006995", 7, False)


async def test_the_list_has_each_request_with_its_money_and_its_filters(shop: Shop) -> None:
    done, painted, failed = (
        await shop.scene.call(),
        await shop.scene.call("painter"),
        await shop.scene.call(outcome="failed"),
    )
    async with shop.house.operator("viewer") as client:
        whole = (await client.get("/admin/requests")).text
        for request_id in (done, painted, failed):
            assert f'id="{request_id}"' in whole
        assert "3 requests ended" in whole
        assert "1 failed or expired" in whole
        cases = {
            "model=painter": {painted},
            "outcome=unsuccessful": {failed},
            "outcome=failed": {failed},
            f"id={painted}": {painted},
            f"id={painted[:20]}": {painted},
            "charge=0.0005": {painted},
            "account=Ada&outcome=succeeded": {done, painted},
            "key=prod&task=chat&route=": {done, painted, failed},
            "retried=1": set(),
            "total=3600000": set(),
            "account=Nobody": set(),
        }
        for query, wanted in cases.items():
            page = await client.get(f"/admin/requests?{query}")
            assert page.status_code == 200, page.text
            assert set(re.findall(r'<tr data-href="[^"]*" id="(req_[0-9a-f]+)"', page.text)) == wanted, query
        exported = (await client.get("/admin/requests.json?model=painter")).json()["requests"]
        assert [(one["id"], one["charge_nanos"], one["account"]) for one in exported] == [(painted, 1_000_000, "Ada")]
        table = (await client.get("/admin/requests.csv")).text.splitlines()
        assert table[0].startswith("id,created_at,")
        assert len(table) == 4


async def test_each_filter_without_a_match_can_be_taken_away(shop: Shop) -> None:
    async with shop.house.operator("viewer") as client:
        page = (await client.get("/admin/requests?model=painter&outcome=failed&range=7d")).text
        assert "Take one away" in page
        assert 'href="/admin/requests?outcome=failed&amp;range=7d"' in page
        for wrong in ("id=zzz", "outcome=odd", "charge=x", "total=-1", "task=cooking", "after=1"):
            assert (await client.get(f"/admin/requests?{wrong}")).status_code == 400, wrong


async def test_pages_go_on_where_the_one_before_ended(shop: Shop) -> None:
    made = [await shop.scene.call("painter") for _ in range(53)]
    async with shop.house.operator("viewer") as client:
        seen: list[str] = []
        address = "/admin/requests"
        while address:
            page = (await client.get(address)).text
            seen += re.findall(r'<tr data-href="[^"]*" id="(req_[0-9a-f]+)"', page)
            link = re.search(r'<a class="button" rel="next" href="([^"]*)"', page)
            address = link[1].replace("&amp;", "&") if link else ""
    assert seen == sorted(made, reverse=True)


async def test_open_requests_are_listed_the_longest_waiting_first(shop: Shop) -> None:
    first, second = await shop.scene.admit(), await shop.scene.admit("painter")
    async with shop.house.operator("viewer") as client:
        page = (await client.get("/admin/requests?outcome=open")).text
        assert re.findall(r'<tr data-href="[^"]*" id="(req_[0-9a-f]+)"', page) == [first, second]
        assert "2 open now" in page
        one = (await client.get(f"/admin/requests/{first}")).text
        assert "Open: waiting" in one
        assert "Where it stands in its queue is not known" in one
        assert (await client.get(f"/admin/requests/{first}/refund")).status_code == 403
    async with shop.house.operator("billing") as client:
        assert (await client.get(f"/admin/requests/{first}/refund")).status_code == 409


async def test_what_is_new_waits_behind_its_number(shop: Shop) -> None:
    seen = await shop.scene.call()
    for _ in range(3):
        await shop.scene.call("painter")
    async with shop.house.operator("viewer") as client:

        async def first(query: str) -> str:
            asked = await read_asked(shop.house.engine, dict(part.split("=") for part in query.split("&") if part),
                                     read_period({}).range)  # fmt: skip
            return str(await count_new(shop.house.engine, to_now(asked), uuid_of(seen)))

        assert await asyncio.gather(first(""), first("model=talker"), first("account=Ada")) == ["3", "0", "3"]
        assert (await client.get("/admin/requests/new?since=odd")).status_code == 400


async def test_one_request_tells_its_money_to_the_nano(shop: Shop) -> None:
    request_id = await shop.scene.call("painter")
    await shop.scene.call()
    async with shop.house.operator("viewer") as client:
        page = (await client.get(f"/admin/requests/{request_id}")).text
        assert "Sum, exact" in page
        assert "rounded once, half to even" in page
        assert page.count("$0.001") >= 3
        assert "unaccounted" in page
        assert 'class="waterfall"' in page
        assert f"/v1/requests/{request_id}" in page
        plain = (await client.get(f"/admin/requests/{request_id}?format=json")).json()
        assert plain["end"]["charge_nanos"] == 1_000_000
        assert [(one["account_id"] == 0, one["amount_nanos"]) for one in plain["entries"]] == [
            (False, -1_000_000),
            (True, 1_000_000),
        ]
        assert (await client.get("/admin/requests/req_" + "0" * 32)).status_code == 404
        assert (await client.get("/admin/requests/odd")).status_code == 404


async def test_a_charge_is_given_back_by_form_and_a_form_sent_twice_counts_once(shop: Shop) -> None:
    request_id = await shop.scene.call("painter")
    path = f"/admin/requests/{request_id}/refund"
    async with shop.house.operator("viewer") as client:
        assert (await client.get(path)).status_code == 403
    async with shop.house.operator("billing") as client:
        asked = (await client.get(path)).text
        assert "At most $0.001 can be given back" in asked
        assert "has $10.00 available in place of $9.999" in asked
        wrong = await send(client, path, {"amount": "5", "reason": "greed"})
        assert wrong.status_code == 422
        assert "can still be given back" in wrong.text
        assert (await send(client, path, {"amount": "0.0004", "reason": ""})).status_code == 422
        number = re.search(r'name="transaction_id" value="([^"]+)"', asked)
        assert number is not None
        fields = {"amount": "0.0004", "reason": "blurred", "transaction_id": number[1]}
        assert (await send(client, path, fields)).status_code == 303
        shown = (await client.get(f"/admin/requests/{request_id}")).text
        assert "$0.0004 is given back." in shown
        assert "/admin/audit/" in shown
        assert "blurred" in shown
        assert (await send(client, path, fields)).status_code == 303
    told = await Refunds(shop.scene.engine).of_request(request_id)
    assert (told.refunded_nanos, [one.actor for one in told.refunds]) == (400_000, ["billing key"])
    assert (await shop.scene.books.verify(allowed_repeats=0)).holds
