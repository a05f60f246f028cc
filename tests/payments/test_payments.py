"""Payments come in by signed webhooks: each is booked once, exactly, and nothing unsigned is looked at."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.di import Provide

from gateway.http.errors import native_body
from gateway.http.handlers import handlers_of
from gateway.http.payments.routes import MOST_BYTES, Cashier, take_payment
from gateway.ledger.accounts import NewAccount
from gateway.ledger.payments import Payments
from gateway.settings import load_settings
from tests.ledger.scene import USD, Scene

SECRET = "a-payment-secret-of-some-length"
STRIPE = "whsec_5f3c0d2a9b8e7f6a5b4c3d2e1f0a9b8c"


class Office:
    """A gateway's door for payments, with a real Postgres behind it."""

    def __init__(self, scene: Scene, client: httpx.AsyncClient, payments: Payments) -> None:
        self.scene = scene
        self.client = client
        self.payments = payments

    async def stripe(self, event: dict[str, Any], **how: Any) -> httpx.Response:
        return await self.send("stripe", "stripe-signature", json.dumps(event).encode(), STRIPE, **how)

    async def generic(self, **fields: Any) -> httpx.Response:
        event = {"id": "evt-1", "type": "payment.succeeded", "account_id": self.scene.account.id, "amount_usd": "25"}
        body = json.dumps(event | fields).encode()
        return await self.send("generic", "faregate-signature", body, SECRET)

    async def send(
        self, provider: str, header: str, body: bytes, secret: str, *, age_s: int = 0, extra: str = ""
    ) -> httpx.Response:
        """Sign as Stripe documents it: the timestamp, a dot, the body, by HMAC-SHA256, in hexadecimal."""
        stamp = int(time.time()) - age_s
        mark = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {header: f"t={stamp},{extra}v1={mark}", "content-type": "application/json"}
        return await self.client.post(f"/payments/{provider}", content=body, headers=headers)

    async def available(self) -> int:
        return (await self.scene.accounts.show(self.scene.account.id)).available_nanos

    async def outcomes(self) -> list[str]:
        return [one.outcome for one in await self.payments.list()]


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    scene = await Scene.open(database_url)
    payments = Payments(scene.engine)
    environ = {
        "FAREGATE_DATABASE_URL": database_url,
        "FAREGATE_REDIS_URL": "redis://127.0.0.1/0",
        "FAREGATE_ADMIN_KEY": "x" * 20,
        "FAREGATE_PAYMENT_SECRET": SECRET,
        "FAREGATE_STRIPE_WEBHOOK_SECRET": STRIPE,
    }
    cashier = Cashier(load_settings(environ), payments)
    app = Litestar(
        [take_payment],
        dependencies={"cashier": Provide(lambda: cashier, sync_to_thread=False)},
        exception_handlers=handlers_of(native_body),
        openapi_config=None,
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield Office(scene, client, payments)
    await scene.close()


def session(account: object, **fields: Any) -> dict[str, Any]:
    """Write an event as Stripe's Checkout does, with the fields that matter and some that do not."""
    told = {
        "id": "cs_test_1",
        "object": "checkout.session",
        "amount_total": 1999,
        "currency": "usd",
        "client_reference_id": str(account),
        "metadata": {},
        "mode": "payment",
        "payment_intent": "pi_1",
        "payment_status": "paid",
        "livemode": False,
    }
    return {
        "id": "evt_1Q",
        "object": "event",
        "api_version": "2025-01-27.acacia",
        "type": "checkout.session.completed",
        "data": {"object": told | fields},
    }


async def test_a_paid_checkout_session_is_booked_to_the_cent_and_once(office: Office) -> None:
    before = await office.available()
    event = session(office.scene.account.id)
    answers = [await office.stripe(event) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert [answer.json()["outcome"] for answer in answers] == ["booked"] * 3
    assert await office.available() == before + 19_990_000_000
    (kept,) = await office.payments.list()
    assert (kept.provider, kept.event_id, kept.amount_nanos) == ("stripe", "evt_1Q", 19_990_000_000)
    report = await office.scene.books.verify()
    assert report.holds


async def test_the_same_event_many_times_at_once_is_booked_once(office: Office) -> None:
    before = await office.available()
    event = session(office.scene.account.id)
    answers = await asyncio.gather(*(office.stripe(event) for _ in range(6)))
    assert {answer.json()["outcome"] for answer in answers} == {"booked"}
    assert await office.available() == before + 19_990_000_000


async def test_a_payment_told_by_session_and_by_intent_is_booked_once(office: Office) -> None:
    before, account = await office.available(), office.scene.account.id
    intent = {
        "id": "evt_2",
        "type": "payment_intent.succeeded",
        "data": {
            "object": {
                "id": "pi_1",
                "amount_received": 1999,
                "currency": "usd",
                "metadata": {"account_id": str(account)},
            }
        },
    }
    assert (await office.stripe(intent)).json()["outcome"] == "booked"
    assert (await office.stripe(session(account))).json()["outcome"] == "ignored"
    other = session(account, amount_total=2000)
    assert (await office.stripe(other | {"id": "evt_3"})).json()["outcome"] == "attention"
    assert await office.available() == before + 19_990_000_000


@pytest.mark.parametrize(
    ("fields", "outcome", "why"),
    [
        ({"currency": "eur"}, "refused", "only usd"),
        ({"amount_total": 0}, "refused", "above zero"),
        ({"amount_total": 19.99}, "refused", "above zero"),
        ({"amount_total": True}, "refused", "above zero"),
        ({"client_reference_id": "999"}, "refused", "no such account"),
        ({"client_reference_id": None}, "refused", "names no account"),
        ({"client_reference_id": "1; drop"}, "refused", "names no account"),
        ({"client_reference_id": "9" * 30}, "refused", "names no account"),
        ({"payment_status": "unpaid"}, "ignored", "not paid yet"),
    ],
)
async def test_what_stripe_tells_and_cannot_be_booked_is_kept_with_its_reason(
    office: Office, fields: dict[str, Any], outcome: str, why: str
) -> None:
    before = await office.available()
    answer = await office.stripe(session(office.scene.account.id, **fields))
    assert answer.status_code == 200
    assert (answer.json()["outcome"], why in answer.json()["detail"]) == (outcome, True)
    assert await office.outcomes() == [outcome]
    assert await office.available() == before


async def test_a_refused_event_is_looked_at_again_when_it_is_sent_again(office: Office) -> None:
    event = session(office.scene.account.id + 1)
    assert (await office.stripe(event)).json()["outcome"] == "refused"
    made = await office.scene.accounts.create(NewAccount(name="Late"))
    assert made.id == office.scene.account.id + 1
    assert (await office.stripe(event)).json()["outcome"] == "booked"
    assert (await office.scene.accounts.show(made.id)).available_nanos == 19_990_000_000
    assert await office.outcomes() == ["booked"]


@pytest.mark.parametrize("kind", ["charge.refunded", "charge.dispute.created"])
async def test_money_that_goes_back_waits_for_the_operator(office: Office, kind: str) -> None:
    before = await office.available()
    event = {"id": "evt_9", "type": kind, "data": {"object": {"id": "ch_1", "payment_intent": "pi_1", "amount": 5}}}
    assert (await office.stripe(event)).json()["outcome"] == "attention"
    assert "pi_1" in (await office.payments.list())[0].detail
    assert await office.available() == before


async def test_a_provider_of_ones_own_is_booked_and_told_of_refusals(office: Office) -> None:
    before = await office.available()
    assert (await office.generic()).json()["outcome"] == "booked"
    assert (await office.generic()).json()["outcome"] == "booked"
    assert (await office.generic(id="evt-2", payment_id="evt-1")).json()["outcome"] == "ignored"
    assert await office.available() == before + 25 * USD
    refused = await office.generic(id="evt-3", account_id=999)
    assert (refused.status_code, refused.json()["outcome"]) == (422, "refused")
    assert (await office.generic(id="evt-4", type="payment.reversed")).json()["outcome"] == "attention"
    for wrong in ({"amount_usd": 25}, {"amount_usd": "1e-10"}, {"account_id": "1"}, {"more": 1}, {"type": "x"}):
        assert (await office.generic(id="evt-5", **wrong)).status_code == 400
    assert await office.available() == before + 25 * USD


async def test_nothing_unsigned_stale_or_changed_is_looked_at(office: Office) -> None:
    body = json.dumps(session(office.scene.account.id)).encode()
    good = await office.send("stripe", "stripe-signature", body, STRIPE, extra="v0=6ff,v1=00,")
    assert good.status_code == 200
    stamp = int(time.time())
    mark = hmac.new(STRIPE.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    texts = set()
    for header, sent in (
        ("", body),
        ("t=,v1=", body),
        (f"t={stamp}", body),
        (f"t={stamp},v0={mark}", body),
        (f"t={stamp + 1},v1={mark}", body),
        (f"t={stamp},t={stamp},v1={mark}", body),
        (f"t={stamp},v1={mark}", body + b" "),
        (f"t=-{stamp},v1={mark}", body),
        (f"t={stamp},v1={mark}" + "," * 2000, body),
    ):
        answer = await office.client.post("/payments/stripe", content=sent, headers={"stripe-signature": header})
        assert answer.status_code == 400, header
        texts.add(answer.text)
    for age_s in (400, -400):
        answer = await office.send("stripe", "stripe-signature", body, STRIPE, age_s=age_s)
        assert answer.status_code == 400
        texts.add(answer.text)
    other = await office.send("stripe", "stripe-signature", body, SECRET)
    texts.add(other.text)
    assert len(texts) == 1
    assert "invalid_signature" in texts.pop()
    assert len(await office.payments.list()) == 1


async def test_no_secret_no_door_and_a_bound_on_the_body(office: Office) -> None:
    assert (await office.client.post("/payments/paypal", content=b"{}")).status_code == 404
    large = await office.send("stripe", "stripe-signature", b"x" * (MOST_BYTES + 1), STRIPE)
    assert large.status_code == 413
    environ = {
        "FAREGATE_DATABASE_URL": "postgresql://x",
        "FAREGATE_REDIS_URL": "redis://x",
        "FAREGATE_ADMIN_KEY": "x" * 20,
    }
    closed = Cashier(load_settings(environ), office.payments)
    for name in ("stripe", "generic"):
        with pytest.raises(Exception, match="Nothing takes payments here"):
            closed.read(name, {}, b"{}")
