"""What is sent for one event, made by the family that its request came through."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from gateway.webhooks.events import Due

SignedAs = Literal["standard", "fal"]
"""How receivers verify it: by the Standard Webhooks specification, or as fal documents it."""


class Message(msgspec.Struct, frozen=True):
    """The body of a webhook, before it is encoded, and how it is to be signed."""

    content: dict[str, Any]
    signed: SignedAs = "standard"


Render = Callable[[Due], Awaitable[Message | None]]
"""Makes the message of an event; None where its request is no more."""
