"""Step 3: the most a request can cost, at the price version in force now, which is pinned to it."""

import msgspec

from gateway.errors import PaymentRequired
from gateway.flow.resolve import Resolved
from gateway.money import usd_text
from gateway.pricing.quote import Quote, ceiling


class Quoted(msgspec.Struct, frozen=True):
    """A resolved call with its ceiling."""

    resolved: Resolved
    quote: Quote


def quote(resolved: Resolved) -> Quoted:
    """Compute the ceiling in nanos. Raises PaymentRequired when it is above the caller's own `max_price`."""
    most = ceiling(resolved.model, resolved.input)
    limit = resolved.call.max_price_nanos
    if limit is not None and most.nanos > limit:
        raise PaymentRequired(
            f"This can cost up to ${usd_text(most.nanos)}, above your max_price of ${usd_text(limit)}. "
            "Raise max_price, or ask for less.",
            code="price_too_high",
            param="max_price",
        )
    return Quoted(resolved, most)
