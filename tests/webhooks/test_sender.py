"""What is due is told: signed, once or more often, in order, and nobody waits for another's receiver."""

import asyncio
import time

import pytest

from gateway.net.addresses import Allowed
from gateway.webhooks.sender import Sender
from tests.webhooks.office import PATIENT_S, QUICK, Office, running
from tests.webhooks.receiver import Receiver, verify

ONE_SLOW = (60.0,)


async def test_the_end_of_a_request_is_told_signed_with_the_request_as_its_owner_reads_it(office: Office) -> None:
    async with Receiver() as receiver, running(office.sender()):
        request_id = await office.ended(receiver.url, metadata={"order": "17"})
        [post] = await receiver.until(1)
        delivery = await office.until(request_id, "delivered")
    assert post.path == "/hook?for=me"
    assert post.headers["content-type"] == "application/json"
    assert post.id == delivery.id == f"evt_{request_id[4:]}-completed"
    assert (post.told["id"], post.told["type"]) == (post.id, "request.completed")
    shown = post.told["data"]
    assert (shown["id"], shown["status"], shown["model"]) == (request_id, "succeeded", "painter")
    assert (shown["charge_nanos"], shown["metadata"]) == (1_000, {"order": "17"})
    assert shown["attempts"][0]["worker"] == "w1"
    secret = (await office.secrets.show(office.payer[0])).secret
    assert verify(secret, post)
    assert not verify("whsec_" + "A" * 44, post)
    assert [(one.number, one.status, one.error) for one in delivery.log] == [(1, 200, "")]


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (500, 500, "answered 500"),
        (404, 404, "answered 404"),
        ("garbage", None, "RemoteProtocolError"),
        ("slow", None, "no answer in time"),
        ("http://127.0.0.1:1/inside", 302, "redirects are not followed"),
    ],
)
async def test_a_receiver_in_trouble_is_tried_again_under_the_same_id(
    office: Office, answer: int | str, status: int | None, error: str
) -> None:
    sender = office.sender(timeout_s=0.5, schedule=QUICK * 5) if answer == "slow" else office.sender()
    async with Receiver(answer, 204) as receiver, running(sender):
        request_id = await office.ended(receiver.url)
        delivery = await office.until(request_id, "delivered")
    last, first, *between = [(one.status, one.error) for one in delivery.log]
    assert (last, first) == ((204, ""), (status, error))
    assert set(between) <= ({first} if answer == "slow" else set()), "only a stall makes a try more"
    assert len(set(receiver.ids)) == 1
    assert receiver.posts[0].told == receiver.posts[1].told


async def test_a_body_without_an_end_is_not_read(office: Office) -> None:
    async with Receiver("long") as receiver, running(office.sender()):
        request_id = await office.ended(receiver.url)
        delivery = await office.until(request_id, "delivered")
    assert [(one.status, one.error) for one in delivery.log] == [(200, "")]
    assert delivery.log[0].took_ms < PATIENT_S * 1000 / 2


async def test_after_the_last_try_an_event_is_given_up_and_the_books_hold(office: Office) -> None:
    async with Receiver(503) as receiver, running(office.sender()):
        request_id = await office.ended(receiver.url)
        delivery = await office.until(request_id, "given_up")
        await asyncio.sleep(0.3)
        assert len(receiver.posts) == len(QUICK) + 1
    assert delivery.tries == len(QUICK) + 1
    assert [one.status for one in delivery.log] == [503] * 4


async def test_a_receiver_that_says_gone_is_not_tried_again(office: Office) -> None:
    async with Receiver(410) as receiver, running(office.sender()):
        request_id = await office.ended(receiver.url)
        assert (await office.until(request_id, "given_up")).tries == 1


async def test_nothing_is_sent_to_an_address_inside(office: Office) -> None:
    async with Receiver() as receiver, running(office.sender(allowed=Allowed())):
        request_id = await office.ended(receiver.url)
        delivery = await office.until(request_id, "given_up")
        assert receiver.connections == 0
    assert {one.error for one in delivery.log} == {"url_not_allowed"}


async def test_receivers_that_hang_are_down_or_fail_delay_nobody_else(office: Office) -> None:
    """Hundreds of events wait for three receivers in trouble; those of a fourth arrive at once."""
    async with Receiver("slow") as slow, Receiver(500) as failing, Receiver() as well:
        gone = await Receiver().__aenter__()
        await gone.__aexit__()
        for receiver in (slow, failing, gone):
            for _ in range(20):
                await office.ended(receiver.url)
        async with running(office.sender(schedule=ONE_SLOW)):
            await slow.until(1)
            began = time.monotonic()
            for _ in range(20):
                await office.ended(well.url)
            await well.until(20)
            assert time.monotonic() - began < PATIENT_S / 2  # of which each that hangs takes the whole
            assert len(slow.posts) <= 8
    assert len(set(well.ids)) == len(well.ids) == 20


async def test_the_events_of_a_request_come_in_their_order(office: Office) -> None:
    """The receiver fails the first try of each, so that a later event could overtake an earlier one."""
    async with Receiver(500, 200, 500, 200, 500, 200) as receiver, running(office.sender()):
        request_id = await office.admit(receiver.url, ("started", "completed"))
        await office.settle(request_id)
        await office.until(request_id, "delivered")
        assert (await office.of(request_id, "started")).tries >= 1
    kinds = [post.told["type"] for post in receiver.posts]
    assert kinds == sorted(kinds, key=["request.started", "request.completed"].index)
    assert kinds[-1] == "request.completed"


async def test_several_senders_tell_each_event_once(office: Office) -> None:
    senders = [office.sender() for _ in range(3)]
    async with Receiver() as receiver:
        ids = [await office.admit(receiver.url) for _ in range(60)]
        await office.settle(*ids)
        async with running(*senders):
            await receiver.until(60)
            for request_id in ids:
                await office.until(request_id, "delivered")
    assert sorted(receiver.ids) == sorted(f"evt_{request_id[4:]}-completed" for request_id in ids)


async def test_what_a_killed_sender_had_taken_is_told_by_another_under_the_same_id(office: Office) -> None:
    async with Receiver() as receiver:
        request_id = await office.ended(receiver.url)
        [taken] = await office.outbox.lease(most_of_one=4, most=10, busy=[], lease_s=3600)
        assert await office.outbox.lease(most_of_one=4, most=10, busy=[], lease_s=3600) == []
        await office.till.db.execute("update webhook_event set due_at = now()")  # as if its lease had run out
        async with running(office.sender()):
            [post] = await receiver.until(1)
            delivery = await office.until(request_id, "delivered")
        assert post.id == taken.key.id
        assert [one.number for one in delivery.log] == [2]
        await office.outbox.record(taken, status=None, took_ms=1, error="late", next_s=1.0)
        assert (await office.of(request_id)).state == "delivered"


async def test_a_new_secret_signs_beside_the_one_before_until_that_expires(office: Office) -> None:
    account_id = office.payer[0]
    old = (await office.secrets.show(account_id)).secret
    rotated = await office.secrets.rotate(account_id)
    assert rotated.secret != old
    assert rotated.previous_until is not None
    async with Receiver() as receiver, running(office.sender()):
        await office.ended(receiver.url)
        [post] = await receiver.until(1)
        assert verify(old, post)
        assert verify(rotated.secret, post)
        await office.till.db.execute("update webhook_secret set expires_at = now() where expires_at is not null")
        await office.secrets.prune()
        await office.ended(receiver.url)
        post = (await receiver.until(2))[1]
    assert not verify(old, post)
    assert verify(rotated.secret, post)


async def test_an_event_is_told_again_when_its_owner_asks(office: Office) -> None:
    async with Receiver(500, 500, 200) as receiver, running(office.sender(schedule=QUICK[:1])):
        request_id = await office.ended(receiver.url)
        given_up = await office.until(request_id, "given_up")
        again = await office.deliveries.redeliver(office.payer[0], given_up.id)
        assert again.state == "pending"
        delivery = await office.until(request_id, "delivered")
    assert delivery.tries == 3
    assert len(set(receiver.ids)) == 1


async def test_a_sender_that_is_stopped_leaves_nothing_under_way(office: Office) -> None:
    sender: Sender = office.sender(timeout_s=30.0)
    async with Receiver("slow") as receiver:
        request_id = await office.ended(receiver.url)
        async with running(sender):
            await receiver.until(1)
        assert sender.under_way == 0
    assert (await office.of(request_id)).state == "pending"
