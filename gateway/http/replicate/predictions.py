"""`/replicate/v1/predictions`: asked for, looked at, listed, streamed and cancelled."""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.response import ServerSentEvent

from gateway.errors import InvalidRequest, NotFound
from gateway.flow.floor import Floor
from gateway.flow.shelf import Shelf
from gateway.flow.view import View
from gateway.http.dialect import Asked, Asking, Dialect, webhook_of
from gateway.http.endpoint import Desk
from gateway.http.errors import replicate_body
from gateway.http.handlers import handlers_of
from gateway.http.native.submit import wait_s
from gateway.http.openai.video_views import video_headers
from gateway.http.raw import decode, read_head
from gateway.http.replicate.bodies import (
    ModelPredictionBody,
    PredictionBody,
    cancel_after_s,
    kinds_of,
)
from gateway.http.replicate.names import ReplicateNames
from gateway.http.replicate.stream import stream_messages
from gateway.http.replicate.views import CANCEL_NOTE, PREFIX, prediction_view

MOST_WAIT_S = 60
PAGE = 100
MOST_ENTRY_CHARS = 40

_BODY = msgspec.json.Decoder(PredictionBody)
_MODEL_BODY = msgspec.json.Decoder(ModelPredictionBody)

PredictionId = Annotated[str, PathParameter(description="The id of the prediction, which is its request's")]
Owner = Annotated[str, PathParameter(description="Who the model belongs to: `faregate` for ours without an owner")]
Name = Annotated[str, PathParameter(description="The model's name, without its owner")]
Version = Annotated[str, PathParameter(description="The id of the model's only version")]
Cursor = Annotated[str, QueryParameter(description="Where the page before ended", max_length=64)]


class Replicate(Dialect):
    """What Replicate's calls work with."""

    def __init__(self, desk: Desk, floor: Floor, shelf: Shelf) -> None:
        super().__init__("replicate", ReplicateNames(), desk)
        self.floor = floor
        self.shelf = shelf

    def named(self, owner: str, name: str) -> str:
        """Give our name of a model. Raises NotFound."""
        model = self.model(f"{owner}/{name}")
        if model is None:
            raise NotFound("There is no such model. GET /replicate/v1/models lists them.", code="model_not_found")
        return model.name

    async def predict(
        self, request: Asking, raw: bytes, body: ModelPredictionBody, model: str
    ) -> Response[dict[str, Any]]:
        """Accept a prediction, and wait for it as long as `Prefer: wait=n` says."""
        deadline_s = cancel_after_s(request.headers.get("cancel-after", ""))
        webhook = body.webhook or body.webhook_completed
        kinds = kinds_of(body.webhook_events_filter) if body.webhook else kinds_of(("completed",))
        asked = Asked(
            model=model,
            given=body.input,
            priority=body.priority,
            max_price=body.max_price,
            metadata=body.metadata,
            deadline_s=deadline_s,
            webhook=webhook_of(webhook) if webhook else "",
            webhook_events=kinds if webhook else (),
            notes={CANCEL_NOTE: str(deadline_s)} if deadline_s else {},
        )
        patience_s = min(wait_s(read_head(request.scope).prefer), MOST_WAIT_S)
        view = await self.place(self.call(request, raw, asked), patience_s)
        answer = self.shown(view, 201)
        if view.finished_us is None:
            answer.content["status"] = "starting"  # clients take any other answer to the POST for the end
        return answer

    def shown(self, view: View, status: int = 200) -> Response[dict[str, Any]]:
        """Show a prediction."""
        return Response(prediction_view(view, self.addresses), status_code=status, headers=video_headers(view))


class PredictionsController(Controller):
    """The predictions of an account."""

    path = PREFIX
    tags = ("Replicate",)
    exception_handlers = handlers_of(replicate_body)

    @post("/predictions", status_code=201, summary="Ask for a prediction of a version or a model")
    async def create(self, request: Asking, replicate: NamedDependency[Replicate]) -> Response[dict[str, Any]]:
        """Accept a prediction."""
        raw = await replicate.body(request)
        body = decode(_BODY, raw)
        if (body.version is None) == (body.model is None):
            raise InvalidRequest("Give either version or model.", param="version")
        return await replicate.predict(request, raw, body, body.version or body.model or "")

    @post(
        ["/models/{owner:str}/{name:str}/predictions", "/deployments/{owner:str}/{name:str}/predictions"],
        status_code=201,
        summary="Ask for a prediction of this model",
    )
    async def create_of(
        self, request: Asking, owner: Owner, name: Name, replicate: NamedDependency[Replicate]
    ) -> Response[dict[str, Any]]:
        """Accept a prediction of the model in the address."""
        raw = await replicate.body(request)
        body = decode(_MODEL_BODY, raw)
        return await replicate.predict(request, raw, body, replicate.named(owner, name))

    @get("/predictions", summary="The account's predictions that made media, the latest first")
    async def index(
        self, request: Asking, replicate: NamedDependency[Replicate], cursor: Cursor = ""
    ) -> dict[str, Any]:
        """List a page of predictions: open ones, and finished ones that are kept."""
        page, more = await replicate.shelf.page(read_head(request.scope).secret, cursor, PAGE, True)
        following = f"{replicate.base}{PREFIX}/predictions?cursor={page[-1].id}" if more else None
        results = [prediction_view(view, replicate.addresses) for view in page]
        return {"previous": None, "next": following, "results": results}

    @get("/predictions/{prediction_id:str}", summary="How a prediction stands")
    async def show(
        self, request: Asking, prediction_id: PredictionId, replicate: NamedDependency[Replicate]
    ) -> Response[dict[str, Any]]:
        """Show one prediction."""
        return replicate.shown(await replicate.watch.view_for(read_head(request.scope).secret, prediction_id))

    @post("/predictions/{prediction_id:str}/cancel", status_code=200, summary="Stop a prediction")
    async def cancel(
        self, request: Asking, prediction_id: PredictionId, replicate: NamedDependency[Replicate]
    ) -> Response[dict[str, Any]]:
        """Stop one prediction. One that has ended stays as it is."""
        return replicate.shown(await replicate.watch.cancel(read_head(request.scope).secret, prediction_id))

    @get("/predictions/{prediction_id:str}/stream", summary="A prediction as server-sent events, as it comes")
    async def stream(
        self, request: Asking, prediction_id: PredictionId, replicate: NamedDependency[Replicate]
    ) -> ServerSentEvent:
        """Stream the output of one prediction, from the event after `Last-Event-ID`."""
        after = request.headers.get("last-event-id", "")
        if len(after) > MOST_ENTRY_CHARS or (not after.replace("-", "").isdigit() and after):
            raise InvalidRequest("Last-Event-ID is not one that this server gave.", param="Last-Event-ID")
        secret = read_head(request.scope).secret
        view = await replicate.watch.view_for(secret, prediction_id)
        messages = stream_messages(replicate.watch, replicate.addresses, secret, view, after)
        return ServerSentEvent(messages, headers={"cache-control": "no-store", "x-request-id": prediction_id})
