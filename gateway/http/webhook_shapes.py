"""The bodies of webhooks, in the shape of the family that a request came through: one entry a family."""

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any

from gateway.flow.call import FAMILY_NOTE
from gateway.flow.view import View
from gateway.http.fal.webhook import fal_message
from gateway.http.native.views import request_view
from gateway.http.replicate.webhook import replicate_message
from gateway.media.addresses import Addresses
from gateway.webhooks.events import Due
from gateway.webhooks.message import Message

Shape = Callable[[Due, View, Addresses], Message]


def message_of(due: Due, view: View, addresses: Addresses) -> Message:
    """Make the message of an event; in the native shape where no family of its own is noted."""
    return _SHAPES.get(view.notes.get(FAMILY_NOTE, ""), _native)(due, view, addresses)


def _native(due: Due, view: View, addresses: Addresses) -> Message:
    created_at = due.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    told: dict[str, Any] = {"id": due.key.id, "type": due.key.type, "created_at": created_at}
    if due.key.kind == "progress":
        told["progress"] = due.key.number / 100
    return Message(told | {"data": request_view(view, addresses)})


_SHAPES: Mapping[str, Shape] = {
    "fal": fal_message,
    "replicate": replicate_message,
}
