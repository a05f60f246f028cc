"""What a receiver of Replicate's webhooks is told: the prediction as it stands then."""

from gateway.flow.view import View
from gateway.http.replicate.views import prediction_view
from gateway.media.addresses import Addresses
from gateway.webhooks.events import Due
from gateway.webhooks.message import Message


def replicate_message(due: Due, view: View, addresses: Addresses) -> Message:
    """Make the message of an event, signed as the Standard Webhooks specification says."""
    return Message(prediction_view(view, addresses))
