"""Step 3: the most a request can cost, at the price version in force now, which is pinned to it."""

import msgspec

from gateway.catalog.model import Snapshot
from gateway.errors import PaymentRequired
from gateway.flow.resolve import Resolved
from gateway.flow.rivals import Serves, cheapest
from gateway.flow.stage import Staged
from gateway.money import usd_text
from gateway.pricing.quote import Quote, ceiling
from gateway.routing.narrow import Narrowing


class Quoted(msgspec.Struct, frozen=True):
    """A resolved call with its ceiling."""

    resolved: Staged
    quote: Quote
    others: "tuple[Quoted, ...]" = ()
    """The same call for other models that may answer it, in order, each with its own input and ceiling."""
    narrowing: Narrowing | None = None
    """What its caller wishes of the ways; None where nothing."""


def quote(snapshot: Snapshot, resolved: Staged, serves: Serves = lambda _: True) -> Quoted:
    """Compute the ceiling in nanos. Raises PaymentRequired when it is above the caller's own `max_price`."""
    most = priced(resolved)
    limit = resolved.call.max_price_nanos
    if limit is not None and most.nanos > limit:
        raise too_dear(snapshot, resolved, most.nanos, serves)
    return Quoted(resolved, most)


def priced(resolved: Resolved) -> Quote:
    """Compute the ceiling for the caller's account. Raises Unprocessable for what the price does not cover."""
    return ceiling(resolved.model, resolved.input, resolved.price, resolved.caller.discount_ppm)


def too_dear(snapshot: Snapshot, resolved: Staged, nanos: int, serves: Serves) -> PaymentRequired:
    """Make the error of a ceiling above `max_price`, which names the cheapest model that would stay below it."""
    limit = resolved.call.max_price_nanos or 0
    best = cheapest(snapshot, resolved, serves)
    if best is not None and best[1] <= limit:
        advice = f"{best[0]} does the same for at most ${usd_text(best[1])}: call it, raise max_price, or ask for less."
    else:
        advice = f"No model does {resolved.task} with this input for that. Raise max_price, or ask for less."
    return PaymentRequired(
        f"This can cost up to ${usd_text(nanos)}, above your max_price of ${usd_text(limit)}. {advice}",
        code="price_too_high",
        param="max_price",
    )
