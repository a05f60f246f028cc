"""From an OpenAI body to a call."""

from typing import Any

import msgspec
from litestar.types import Scope

from gateway.contract.inputs import Input
from gateway.contract.tasks import Task
from gateway.flow.call import Call, Mode
from gateway.http.openai.offers import Offers
from gateway.http.raw import Head, body_hash
from gateway.http.wishes import limit_nanos, wish_of


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
        wish=wish_of(body),
        max_price_nanos=limit_nanos(body),
        priority=body.priority,
        metadata=getattr(body, "metadata", None) or {},
    )


def media_call(received: Received, body: Any, offers: Offers, mode: Mode) -> Call:
    """Make the call of a body that may mean several tasks; it is kept, so that it can be read when waiting is over."""
    task, value = offers[0]
    call = call_of(received, body, task, value, stream=False)
    return msgspec.structs.replace(call, mode=mode, keep=True, others=offers[1:])
