"""Firm prices for a while: the id of a quote carries what was promised, signed, so that no gateway has to remember it.

A quote may be redeemed by the same account, for the same model and input, any number of times until it expires. The
signature is HMAC-SHA256 with a key made from the admin key, which all gateways of a system share.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable

import msgspec

from gateway.catalog.model import Snapshot
from gateway.errors import NotFound, Unprocessable
from gateway.flow.quote import Quoted, quote
from gateway.flow.stage import Staged

PURPOSE = b"faregate quotes 1"
PREFIX = "quo_"
LASTS_S = 600
_SIGNATURE_BYTES = 16
_DIGEST_BYTES = 16
_ENCODER = msgspec.msgpack.Encoder()


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """What was promised to whom, for what, and until when."""

    account: int
    model: int
    price: int
    """The price version."""
    nanos: int
    """The most it will cost."""
    digest: bytes
    """Of the input as its caller sent it."""
    expires_s: int
    """In Unix seconds."""
    discount_ppm: int = 0
    """Of the account when it was promised."""


_DECODER = msgspec.msgpack.Decoder(Offer)


class Offers:
    """Makes the ids of quotes, and reads those that come back."""

    def __init__(self, secret: str, lasts_s: int = LASTS_S, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.new(secret.encode(), PURPOSE, hashlib.sha256).digest()
        self._lasts_s = lasts_s
        self._clock = clock

    def make(self, resolved: Staged, nanos: int) -> tuple[str, int]:
        """Promise that a call costs at most `nanos`. Answers the id of the quote, and its end in Unix seconds."""
        expires_s = int(self._clock()) + self._lasts_s
        digest = input_digest(resolved.call.input)
        caller = resolved.caller
        offer = Offer(
            caller.account_id, resolved.model.id, resolved.price.id, nanos, digest, expires_s, caller.discount_ppm
        )
        body = _ENCODER.encode(offer)
        return PREFIX + base64.urlsafe_b64encode(self._sign(body) + body).decode().rstrip("="), expires_s

    def read(self, text: str) -> Offer:
        """Read the id of a quote. Raises NotFound for one that was never made, Unprocessable once it has expired."""
        try:
            if not text.startswith(PREFIX):
                raise ValueError
            coded = text[len(PREFIX) :]
            plain = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
            signature, body = plain[:_SIGNATURE_BYTES], plain[_SIGNATURE_BYTES:]
            if not hmac.compare_digest(self._sign(body), signature):
                raise ValueError
            offer = _DECODER.decode(body)
        except (ValueError, binascii.Error):
            raise NotFound("There is no such quote.", code="quote_not_found", param="quote") from None
        if offer.expires_s < self._clock():
            raise Unprocessable("This quote has expired; ask for a new one.", code="quote_expired", param="quote")
        return offer

    def _sign(self, body: bytes) -> bytes:
        return hmac.new(self._key, body, hashlib.sha256).digest()[:_SIGNATURE_BYTES]


def redeem(offers: Offers, snapshot: Snapshot, resolved: Staged) -> Quoted:
    """Quote a call at the price, and with the ceiling, that were promised for it.

    Raises NotFound for a quote that was never made, or made for another account, and Unprocessable for one that has
    expired or was made for another model or input.
    """
    offer = offers.read(resolved.call.quote)
    if offer.account != resolved.caller.account_id:
        raise NotFound("There is no such quote.", code="quote_not_found", param="quote")
    if offer.model != resolved.model.id or offer.digest != input_digest(resolved.call.input):
        raise Unprocessable(
            "This quote was made for another model or input. Send what was quoted, or ask for a new quote.",
            code="quote_mismatch",
            param="quote",
        )
    price = snapshot.prices.get(offer.price)
    if price is None:
        raise Unprocessable("This quote has expired; ask for a new one.", code="quote_expired", param="quote")
    caller = msgspec.structs.replace(resolved.caller, discount_ppm=offer.discount_ppm)
    quoted = quote(snapshot, msgspec.structs.replace(resolved, caller=caller, price=price))
    return Quoted(quoted.resolved, msgspec.structs.replace(quoted.quote, nanos=offer.nanos))


def input_digest(value: object) -> bytes:
    """Digest an input as its caller sent it, whatever the order of its fields and the spaces between them."""
    plain = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).digest()[:_DIGEST_BYTES]
