"""From an OpenAI body to a call."""

from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.inputs import Input
from gateway.contract.tasks import Task
from gateway.errors import InvalidRequest
from gateway.flow.call import Call
from gateway.http.raw import Head, body_hash
from gateway.money import parse_usd


def max_price_nanos(usd: str | float | None) -> int | None:
    """Read a caller's `max_price` in US dollars, as a decimal string or a number. Raises InvalidRequest."""
    if usd is None:
        return None
    try:
        return parse_usd(str(usd))
    except ValueError as error:
        raise InvalidRequest(f"max_price: {error}", param="max_price") from None


class Received(msgspec.Struct, frozen=True):
    """What came over the wire: its headers, where to, and the bytes."""

    head: Head
    scope: Scope
    raw: bytes


def call_of(received: Received, body: Any, task: Task, value: Input, *, stream: bool) -> Call:
    """Make the call of one decoded body."""
    head, scope, raw = received.head, received.scope, received.raw
    return Call(
        secret=head.secret,
        model=body.model,
        task=task,
        input=value,
        mode="stream" if stream else "wait",
        keep=bool(getattr(body, "store", False)),
        idempotency_key=head.idempotency_key,
        body_hash=body_hash(head, scope, raw),
        max_price_nanos=max_price_nanos(body.max_price),
        priority=body.priority,
        metadata=getattr(body, "metadata", None) or {},
    )
