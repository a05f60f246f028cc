"""The event of a payment provider of your own: `Faregate-Signature`, and a JSON object of five fields."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.errors import InvalidRequest, misfit
from gateway.ledger.payments import Incoming
from gateway.money import parse_usd
from gateway.twins import refuse_twins

HEADER = "faregate-signature"
_Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^(?![\s\S]*[\x00-\x1f\x7f])")]


class GenericEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed. Amounts are decimals in text, so that no number is rounded on its way."""

    id: _Word
    type: Literal["payment.succeeded", "payment.reversed"]
    account_id: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    amount_usd: Annotated[str, Meta(max_length=40)]
    payment_id: _Word | None = None
    """The payment, where several events may tell of it; without it, the event's own id."""


def read_generic(body: bytes) -> Incoming:
    """Read an event. Raises InvalidRequest naming the field."""
    try:
        event = msgspec.json.decode(body, type=GenericEvent)
        refuse_twins(body)
    except msgspec.ValidationError as error:
        raise misfit(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidRequest("The body is not valid JSON.", code="invalid_json") from None
    try:
        amount = parse_usd(event.amount_usd)
    except ValueError as error:
        raise InvalidRequest(f"{error}.", param="amount_usd") from None
    came_in = event.type == "payment.succeeded"
    return Incoming(
        provider="generic",
        event_id=event.id,
        kind="payment" if came_in else "attention",
        payment_id=event.payment_id or event.id,
        account_id=event.account_id,
        amount_nanos=amount,
        detail="" if came_in else f"{event.type}: take it back by a correction, or leave it",
    )
