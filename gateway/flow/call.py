"""A call: what a caller asked, whichever API family it came through."""

from typing import Literal

import msgspec

from gateway.contract.inputs import Input
from gateway.contract.tasks import Task
from gateway.db.webhooks import WebhookKind
from gateway.flow.wish import Wish
from gateway.media.inlet import Intake

Mode = Literal["wait", "stream", "async"]
"""Whether the caller waits for the whole answer, reads it as it comes, or comes back for it."""

Priority = Literal["low", "normal", "high"]

WEIGHTS: dict[Priority, float] = {"low": 0.25, "normal": 1.0, "high": 4.0}
"""A priority is a share of the queue, so that none of them starves."""


NOTE_PREFIX = "faregate:"
"""Begins the names under which notes are kept among the metadata; no caller's may."""
FAMILY_NOTE = "family"
"""The note that names the API family of a request: its webhooks are in that family's shape. Not noted by all."""

CHOICE_NOTE = "choice"
"""The note of what `auto` chose and why, in JSON."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of any task. Nothing in it has been checked but its shape."""

    secret: str
    """The API key as presented."""
    key_id: int | None = None
    """The key that pays, where an operator has chosen it by its id: then there is no secret. No API family sets it."""
    model: str
    task: Task | None
    """None where the family leaves it to the model (the native one)."""
    input: Input | msgspec.Raw
    """The input, or its JSON where the task is not known yet."""
    others: tuple[tuple[Task, Input], ...] = ()
    """What else the call may mean, the likeliest first, where its model does not do `task`."""
    mode: Mode = "wait"
    keep: bool = False
    """Whether output and events are kept for a later reader."""
    idempotency_key: str = ""
    body_hash: bytes = b""
    """SHA-256 of the body, where there is an idempotency key."""
    wish: Wish | None = None
    """What the caller says of the choice among models and ways; None where nothing."""
    max_price_nanos: int | None = None
    quote: str = ""
    """The id of a quote whose price is to be kept; empty for the price in force now."""
    deadline_s: int | None = None
    priority: Priority = "normal"
    metadata: dict[str, str] = {}
    webhook: str = ""
    """Where the caller wants to be told of the request; empty where nowhere."""
    webhook_events: tuple[WebhookKind, ...] = ()
    intake: Intake | None = None
    """What came with the call and lies in the blob store already; None where nothing did."""
    notes: dict[str, str] = {}
    """What the call's family tells again when it shows the request, such as the prompt of a video."""
