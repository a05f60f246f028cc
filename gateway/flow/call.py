"""A call: what a caller asked, whichever API family it came through."""

from typing import Literal

import msgspec

from gateway.contract.inputs import Input
from gateway.contract.tasks import Task

Mode = Literal["wait", "stream", "async"]
"""Whether the caller waits for the whole answer, reads it as it comes, or comes back for it."""

Priority = Literal["low", "normal", "high"]

WEIGHTS: dict[Priority, float] = {"low": 0.25, "normal": 1.0, "high": 4.0}
"""A priority is a share of the queue, so that none of them starves."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of any task. Nothing in it has been checked but its shape."""

    secret: str
    """The API key as presented."""
    model: str
    task: Task | None
    """None where the family leaves it to the model (the native one)."""
    input: Input | msgspec.Raw
    """The input, or its JSON where the task is not known yet."""
    mode: Mode = "wait"
    keep: bool = False
    """Whether output and events are kept for a later reader."""
    idempotency_key: str = ""
    body_hash: bytes = b""
    """SHA-256 of the body, where there is an idempotency key."""
    max_price_nanos: int | None = None
    deadline_s: int | None = None
    priority: Priority = "normal"
    metadata: dict[str, str] = {}
