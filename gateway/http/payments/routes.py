"""`POST /payments/{provider}`: no session and no key; what counts is the provider's signature over the raw body."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import structlog
from litestar import Request, Response, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter

from gateway.errors import NotFound
from gateway.http.payments.generic import HEADER as GENERIC_HEADER
from gateway.http.payments.generic import read_generic
from gateway.http.payments.signature import check_signature
from gateway.http.payments.stripe import HEADER as STRIPE_HEADER
from gateway.http.payments.stripe import read_stripe
from gateway.ledger.payments import Incoming, Payments
from gateway.settings import Settings

log = structlog.get_logger()

MOST_BYTES = 256 * 1024

ProviderName = Annotated[str, PathParameter(description="`stripe` or `generic`.")]


class Provider(msgspec.Struct, frozen=True):
    """How a provider signs, and how its events are read."""

    header: str
    secret: str
    read: Callable[[bytes], Incoming]
    tells_refusals: bool
    """Whether a payment that is not booked is answered 422; else 200, where the provider would only repeat it."""


class Cashier:
    """Takes payments of the providers whose secret is set."""

    def __init__(self, settings: Settings, payments: Payments, clock: Callable[[], float] = time.time) -> None:
        self.payments = payments
        self._clock = clock
        self._providers = {
            "generic": Provider(GENERIC_HEADER, settings.payment_secret, read_generic, True),
            "stripe": Provider(STRIPE_HEADER, settings.stripe_webhook_secret, read_stripe, False),
        }

    def read(self, name: str, headers: Any, body: bytes) -> tuple[Provider, Incoming]:
        """Verify and read an event. Raises NotFound where nothing is set up, or InvalidRequest."""
        provider = self._providers.get(name)
        if provider is None or not provider.secret:
            raise NotFound("Nothing takes payments here.", code="payments_not_configured")
        check_signature(headers.get(provider.header, ""), body, provider.secret, self._clock())
        return provider, provider.read(body)


@post(
    "/payments/{provider:str}",
    status_code=200,
    summary="Tell of a payment, signed by its provider",
    tags=["Operations"],
    request_max_body_size=MOST_BYTES,
)
async def take_payment(
    provider: ProviderName, request: Request[Any, Any, State], cashier: NamedDependency[Cashier]
) -> Response[dict[str, Any]]:
    """Book a payment as a top-up, once, however often it is told."""
    found, incoming = cashier.read(provider, request.headers, await request.body())
    taken = await cashier.payments.take(incoming)
    log.info(
        "payment.told", provider=provider, payment_event=taken.event_id, outcome=taken.outcome, detail=taken.detail
    )
    body = {"outcome": taken.outcome, "detail": taken.detail}
    refused = taken.outcome == "refused" and found.tells_refusals
    return Response(body, status_code=422 if refused else 200, media_type="application/json")
