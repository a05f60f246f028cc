"""A prediction as server-sent events: `output` as it comes, `error` where it fails, and `done`."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar.response import ServerSentEventMessage

from gateway.contract.events import Ended, TextDelta, TextOutput
from gateway.flow.view import View
from gateway.flow.watch import Watch
from gateway.http.replicate.views import error_of, prediction_output, status_of
from gateway.media.addresses import Addresses
from gateway.queues.port import EventsLost

LOST = "Some of the output is no longer kept as it came; read the prediction itself."


async def stream_messages(
    watch: Watch, addresses: Addresses, secret: str, view: View, after: str
) -> AsyncIterator[ServerSentEventMessage]:
    """Give the events of a prediction after the entry `after`. One that has ended is told from what is kept of it."""
    entry = after or "0-0"
    streamed = bool(after)
    if view.finished_us is None or after:
        try:
            async for entry, event in await watch.events(secret, view.id, after):
                if isinstance(event, Ended):
                    break
                if isinstance(event, TextDelta) and event.choice == 0 and event.text:
                    streamed = True
                    yield _message("output", event.text, entry)
        except EventsLost:
            yield _message("error", LOST, entry)
            return
        view = await watch.settled_view(secret, view.id)
    if not (streamed and isinstance(view.output, TextOutput)):
        for text in _texts(view, addresses):
            yield _message("output", text, entry)
    if status_of(view) == "failed":
        yield _message("error", error_of(view) or "", entry)
    reasons = {"failed": "error", "canceled": "canceled"}
    reason = reasons.get(status_of(view))
    yield _message("done", msgspec.json.encode({"reason": reason} if reason else {}).decode(), entry)


def _texts(view: View, addresses: Addresses) -> list[str]:
    """Write a whole output as texts: itself where it is text, or addresses; else as JSON."""
    output: Any = prediction_output(view.output, addresses)
    if output is None:
        return []
    if isinstance(view.output, TextOutput):
        return [choice.text for choice in view.output.choices[:1]]
    items = output if isinstance(output, list) else [output]
    return [item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in items]


def _message(event: str, data: str, entry: str) -> ServerSentEventMessage:
    return ServerSentEventMessage(data=data, event=event, id=entry)
