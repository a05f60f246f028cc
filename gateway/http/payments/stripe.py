"""The events of Stripe, as far as they tell of money: see docs/guides/payments.md for the mapping.

A payment by Checkout is told twice, by its session and by its payment intent: both have the intent's id, under which
the payment is booked once.
"""

from typing import Any

import msgspec

from gateway.errors import InvalidRequest
from gateway.ledger.payments import Incoming

HEADER = "stripe-signature"
NANOS_PER_CENT = 10**7
_PAID = {"checkout.session.completed", "checkout.session.async_payment_succeeded"}
_ATTENTION = {"charge.refunded", "charge.dispute.created", "charge.dispute.funds_withdrawn"}


class _Data(msgspec.Struct, frozen=True):
    object: dict[str, Any] = {}


class StripeEvent(msgspec.Struct, frozen=True):
    """As much of an event as is looked at."""

    id: str
    type: str
    data: _Data = _Data()


def read_stripe(body: bytes) -> Incoming:
    """Read an event. Raises InvalidRequest where it is none of Stripe's."""
    try:
        event = msgspec.json.decode(body, type=StripeEvent)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidRequest("The body is no event of Stripe.", code="invalid_json") from None
    told = event.data.object
    if event.type in _PAID:
        if told.get("payment_status") != "paid":
            return _made(event, "ignored", detail="not paid yet: another event tells when it is")
        named = told.get("client_reference_id") or _metadata(told)
        return _payment(event, told, "amount_total", _text(told.get("payment_intent")) or _text(told.get("id")), named)
    if event.type == "payment_intent.succeeded":
        named = _metadata(told)
        if not named:
            return _made(event, "ignored", detail="names no account; a Checkout session may tell of it")
        return _payment(event, told, "amount_received", _text(told.get("id")), named)
    if event.type in _ATTENTION:
        payment = _text(told.get("payment_intent"))
        return _made(event, "attention", detail=f"{event.type} of {payment}: take it back by a correction, or leave it")
    return _made(event, "ignored", detail=event.type[:100])


def _payment(event: StripeEvent, told: dict[str, Any], field: str, payment_id: str, named: Any) -> Incoming:
    """Map a payment: whole cents of US dollars, to the account whose number the session or intent carries."""
    cents, currency = told.get(field), told.get("currency")
    if currency != "usd":
        return _made(event, "refused", detail=f"in {str(currency)[:10]}: only usd is booked")
    if not isinstance(cents, int) or isinstance(cents, bool) or cents <= 0:
        return _made(event, "refused", detail="without an amount above zero")
    written = str(named or "")
    if not (written.isascii() and written.isdecimal() and len(written) < 19) or not payment_id:
        return _made(event, "refused", detail="names no account: set client_reference_id or metadata.account_id")
    return Incoming(
        provider="stripe",
        event_id=event.id[:200],
        kind="payment",
        payment_id=payment_id,
        account_id=int(written),
        amount_nanos=cents * NANOS_PER_CENT,
    )


def _made(event: StripeEvent, kind: Any, *, detail: str) -> Incoming:
    return Incoming(provider="stripe", event_id=event.id[:200], kind=kind, detail=detail)


def _metadata(told: dict[str, Any]) -> Any:
    metadata = told.get("metadata")
    return metadata.get("account_id") if isinstance(metadata, dict) else None


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""
