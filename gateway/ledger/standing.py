"""How the limits of a caller stand, and what it means to break one."""

import msgspec

from gateway.errors import FaregateError, PaymentRequired, TooManyRequests
from gateway.money import usd_text


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How a limit of an account or a key stands."""

    name: str
    """Whose, of what kind, and which: `key:budget:day`, `account:rate:requests`."""
    most: int
    """Nanos of a budget; requests or tokens a minute; requests at once."""
    left: int
    resets_ms: int | None = None
    """Until all of it is there again, if nobody asks; None for a budget in all, and for places."""
    wait_ms: int | None = None
    """Of a refused request, until it would fit, if nobody else asks; None for never, and for places."""


Standing = tuple[Limit, ...]
"""The limits of a call's account and key after it; empty where there are none."""

BUSY_S = 1.0
"""When to come back where a place is missing: nobody knows when one will be free."""


def broken(limit: Limit, hold_nanos: int, tokens: int, standing: Standing = ()) -> FaregateError:
    """Make the error of a call that a limit does not leave room for; it says which limit, and when to come back."""
    owner, kind, which = limit.name.split(":")
    error: FaregateError
    if kind == "budget":
        error = _over_budget(owner, which, limit, hold_nanos)
    elif which == "concurrent":
        error = TooManyRequests(
            f"The {owner} may have {limit.most} requests open at once, and {limit.left} are left; wait for one to end.",
            code="concurrency_limit_exceeded",
            retry_after_s=BUSY_S,
        )
    else:
        error = _over_rate(owner, which, limit, tokens)
    error.standing = standing
    return error


def _over_budget(owner: str, period: str, limit: Limit, hold_nanos: int) -> PaymentRequired:
    spans = {"day": "for this day", "week": "for this week", "month": "for this month", "total": "in all"}
    left = (
        f"{usd_text(limit.left)} US dollars are left of the {owner}'s budget of {usd_text(limit.most)} {spans[period]}"
    )
    need = f"this request can cost up to {usd_text(hold_nanos)}"
    if limit.wait_ms is None:
        what = "ask for less, or raise the budget"
    else:
        what = f"ask for less, raise the budget, or wait for its reset in {duration_text(limit.wait_ms)}"
    return PaymentRequired(
        f"{left}, and {need}: {what}.",
        code="budget_exceeded",
        retry_after_s=None if limit.wait_ms is None else limit.wait_ms / 1000,
    )


def _over_rate(owner: str, which: str, limit: Limit, tokens: int) -> TooManyRequests:
    asked = f", and this request can come to {tokens}" if which == "tokens" else ""
    left = f"The {owner} may ask for {limit.most} {which} a minute, {limit.left} are left of it{asked}"
    if limit.wait_ms is None:
        return TooManyRequests(
            f"{left}: ask for less, or raise the limit; waiting will not help.", code="rate_limit_exceeded"
        )
    return TooManyRequests(
        f"{left}: wait for {duration_text(limit.wait_ms)}, or spread the calls.",
        code="rate_limit_exceeded",
        retry_after_s=limit.wait_ms / 1000,
    )


def duration_text(ms: int) -> str:
    """Write a duration as OpenAI's headers do, which is Go's form: `120ms`, `1.5s`, `6m0s`, `23h59m1s`."""
    if ms < 1000:
        return f"{ms}ms"
    seconds, rest = divmod(ms, 1000)
    if seconds < 60:
        return f"{seconds}.{rest:03d}".rstrip("0").rstrip(".") + "s"
    minutes, seconds = divmod(seconds + (rest > 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}s" if hours else f"{minutes}m{seconds}s"
