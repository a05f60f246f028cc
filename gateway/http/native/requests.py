"""`/v1/requests/{id}`: how a request stands, its events, its output, and stopping it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage

from gateway.blobs.store import BlobStore
from gateway.contract.events import AudioDelta, Ended, Event, Progress, Started, TextDelta, media_of
from gateway.errors import InvalidRequest, NotFound
from gateway.flow.watch import Watch
from gateway.http.blobs import blob_answer
from gateway.http.native.views import request_view
from gateway.http.raw import read_head
from gateway.media.addresses import Addresses
from gateway.queues.port import EventsLost

_ENTRY_MOST_CHARS = 40

RequestId = Annotated[str, PathParameter(description="`req_` and 32 hexadecimal digits")]
Index = Annotated[int, QueryParameter(ge=0, le=99, description="Which of its files, from 0")]


def secret_of(request: Request[Any, Any, State]) -> str:
    """Read the API key that a typed call presents."""
    return read_head(request.scope).secret


class RequestsController(Controller):
    """Requests, for whoever owns them."""

    path = "/v1/requests/{request_id:str}"
    tags = ("Native",)

    @get(summary="How a request stands, and once it has ended, its output and charge")
    async def show(
        self,
        request: Request[Any, Any, State],
        request_id: RequestId,
        watch: NamedDependency[Watch],
        addresses: NamedDependency[Addresses],
    ) -> Response[dict[str, Any]]:
        """Show one request, open or ended."""
        view = await watch.view_for(secret_of(request), request_id)
        return Response(
            request_view(view, addresses), headers={"x-request-id": request_id, "cache-control": "no-store"}
        )

    @post("/cancel", status_code=200, summary="Stop a request; what was produced is charged as its model declares")
    async def cancel(
        self,
        request: Request[Any, Any, State],
        request_id: RequestId,
        watch: NamedDependency[Watch],
        addresses: NamedDependency[Addresses],
    ) -> Response[dict[str, Any]]:
        """Stop one request. One that has ended stays as it is."""
        view = await watch.cancel(secret_of(request), request_id)
        return Response(request_view(view, addresses), headers={"x-request-id": request_id})

    @get("/output", summary="The media file that a request made, or one of several")
    async def output(
        self,
        request: Request[Any, Any, State],
        request_id: RequestId,
        watch: NamedDependency[Watch],
        blobs: NamedDependency[BlobStore],
        index: Index = 0,
    ) -> Response[Any]:
        """Give a file of a finished request, or a part of it."""
        view = await watch.view_for(secret_of(request), request_id)
        items = media_of(view.output)
        if index >= len(items) or not items[index].blob:
            raise NotFound("This request has no media output of this number.", param="index")
        return await blob_answer(request, blobs, items[index].blob, items[index].media_type)

    @get("/events", summary="What happens to a request, as server-sent events; resumed with Last-Event-ID")
    async def events(
        self,
        request: Request[Any, Any, State],
        request_id: RequestId,
        watch: NamedDependency[Watch],
        addresses: NamedDependency[Addresses],
    ) -> ServerSentEvent:
        """Stream the events of a request that keeps them, from the one after `Last-Event-ID`."""
        after = request.headers.get("last-event-id", "")
        if len(after) > _ENTRY_MOST_CHARS or (not after.replace("-", "").isdigit() and after):
            raise InvalidRequest("Last-Event-ID is not one that this server gave.", param="Last-Event-ID")
        secret = secret_of(request)
        kept = await watch.events(secret, request_id, after)
        final = partial(_final, watch, secret, request_id, addresses)
        return ServerSentEvent(_messages(kept, final), headers={"cache-control": "no-store"})


async def _messages(
    kept: AsyncIterator[tuple[str, Event]], final: Callable[[], Awaitable[dict[str, Any]]]
) -> AsyncIterator[ServerSentEventMessage]:
    try:
        async for entry, event in kept:
            if isinstance(event, Ended):
                break  # its last; what the owner reads of the end is the settled request
            name, data = _told(event)
            yield ServerSentEventMessage(data=msgspec.json.encode(data).decode(), event=name, id=entry)
    except EventsLost:
        yield ServerSentEventMessage(
            data='{"message":"Some events are no longer kept; read the request itself."}', event="lost"
        )
        return
    yield ServerSentEventMessage(data=msgspec.json.encode(await final()).decode(), event="done")


async def _final(watch: Watch, secret: str, request_id: str, addresses: Addresses) -> dict[str, Any]:
    return request_view(await watch.settled_view(secret, request_id), addresses)


def _told(event: Event) -> tuple[str, dict[str, Any]]:
    if isinstance(event, Started):
        return "started", {"worker": event.worker}
    if isinstance(event, Progress):
        return "progress", {"fraction": event.fraction}
    if isinstance(event, TextDelta):
        return "delta", {"index": event.choice, "text": event.text, "finish_reason": event.finish_reason}
    if isinstance(event, AudioDelta):
        return "delta", {"size_bytes": len(event.data)}
    return "event", {}
