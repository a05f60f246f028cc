"""How a webhook tells a request in fal's shape: https://docs.fal.ai/model-endpoints/webhooks."""

from typing import Any

from gateway.flow.view import View
from gateway.http.fal.errors import fal_body
from gateway.http.fal.views import failure_of, made_of_view, result_of
from gateway.media.addresses import Addresses
from gateway.webhooks.events import Due
from gateway.webhooks.message import Message


def fal_message(due: Due, view: View, addresses: Addresses) -> Message:
    """Make the message of a finished request, signed with the system's public key."""
    told: dict[str, Any] = {"request_id": view.id, "gateway_request_id": view.id}
    error = failure_of(view)
    if error is None:
        payload = result_of(made_of_view(view), addresses)
        return Message(told | {"status": "OK", "payload": payload, "error": None}, "fal")
    return Message(told | {"status": "ERROR", "payload": fal_body(error), "error": error.message}, "fal")
