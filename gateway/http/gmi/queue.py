"""GMI's request queue: models, requests, and stopping one; under the paths of API keys and of signed-in accounts."""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from gateway.catalog.model import Model
from gateway.contract.tasks import TASKS, Task
from gateway.flow.floor import Floor
from gateway.flow.shelf import Shelf
from gateway.flow.view import View
from gateway.http.dialect import Asked, Asking, Dialect
from gateway.http.endpoint import Desk
from gateway.http.errors import gmi_body
from gateway.http.gmi.bodies import QueueBody
from gateway.http.gmi.views import model_view, record_view, submitted_view
from gateway.http.handlers import handlers_of
from gateway.http.model_names import Names
from gateway.http.native.submit import wait_s
from gateway.http.openai.video_views import video_headers
from gateway.http.raw import decode, read_head
from gateway.http.seen import for_sale, seen
from gateway.ledger.keyring import Caller

PREFIX = "/api/v1/ie/requestqueue"
MEDIA_TASKS: tuple[Task, ...] = tuple(
    task for task in TASKS if task not in ("chat", "completion", "embedding", "rerank")
)
"""What lists show: an index of Postgres has the requests of these tasks, and none of text."""
MOST_LISTED = 100

_BODY = msgspec.json.Decoder(QueueBody)

RequestId = Annotated[str, PathParameter(description="`req_` and 32 hexadecimal digits")]
ModelId = Annotated[str, PathParameter(description="Our name for the model, or GMI's")]
ModelAsked = Annotated[str, QueryParameter(description="Only requests of this model", max_length=256)]
Limit = Annotated[int, QueryParameter(ge=1, le=MOST_LISTED, description="How many to list")]
After = Annotated[str, QueryParameter(description="The id of the last request of the page before", max_length=64)]


class GmiQueue(Dialect):
    """What the calls of the queue work with."""

    def __init__(self, desk: Desk, floor: Floor, shelf: Shelf) -> None:
        super().__init__("gmi", Names("gmi"), desk)
        self.floor = floor
        self.shelf = shelf

    def for_sale(self, caller: Caller) -> list[Model]:
        """Give the models that a caller can call, by name."""
        return for_sale(self.way.snapshot(), caller)

    def ids(self, caller: Caller) -> list[str]:
        """Give the names by which a caller can call models: ours, and GMI's where it has another."""
        models = self.for_sale(caller)
        ids = [model.name for model in models]
        return ids + sorted(self.names.wires(self.way.snapshot(), models) - set(ids))

    def model_of(self, caller: Caller, name: str) -> Model:
        """Give a model that a caller may call. Raises NotFound."""
        return seen(caller, self.model(name))


class _Queue(Controller):
    """The models and requests of the queue."""

    tags = ("GMI",)
    exception_handlers = handlers_of(gmi_body)

    @get("/models/{model_id:path}", summary="One model")
    async def show_model(
        self, request: Asking, model_id: ModelId, gmi: NamedDependency[GmiQueue]
    ) -> dict[str, Any]:  # fmt: skip
        """Show one model."""
        caller = await gmi.caller(request)
        model = gmi.model_of(caller, model_id.lstrip("/"))
        return model_view(model, gmi.floor.workers_of(model), caller.account_id, self.path == PREFIX)

    @post("/requests", status_code=200, summary="Submit a request: a model, and a payload in its vendor's names")
    async def submit(self, request: Asking, gmi: NamedDependency[GmiQueue]) -> Response[dict[str, Any]]:
        """Accept a request; with `Prefer: wait=n` it may have ended in the answer."""
        raw = await gmi.body(request)
        body = decode(_BODY, raw)
        asked = Asked(
            model=body.model,
            given=body.payload,
            priority=body.priority,
            max_price=body.max_price,
            metadata=body.metadata,
        )
        patience_s = wait_s(read_head(request.scope).prefer)
        view = await gmi.place(gmi.call(request, raw, asked), patience_s)
        if view.finished_us is None:
            return Response(submitted_view(view), headers=video_headers(view))
        return await self._recorded(request, view, gmi)

    @get("/requests", summary="The account's requests for media, the latest first")
    async def index(
        self,
        request: Asking,
        gmi: NamedDependency[GmiQueue],
        model_id: ModelAsked = "",
        model: ModelAsked = "",
        limit: Limit = MOST_LISTED,
        after: After = "",
    ) -> dict[str, Any]:
        """List requests: open ones, and finished ones that are kept."""
        caller, secret = await gmi.caller(request), read_head(request.scope).secret
        number = gmi.model_of(caller, model_id or model).id if model_id or model else None
        page, _ = await gmi.shelf.page(secret, after, limit, True, number)
        total = await gmi.shelf.count(secret, number)
        return {"requests": [record_view(view, caller, gmi.addresses) for view in page], "total": total}

    @get("/requests/{request_id:str}", summary="How a request stands; once it has ended, its outcome and charge")
    async def show(
        self, request: Asking, request_id: RequestId, gmi: NamedDependency[GmiQueue]
    ) -> Response[dict[str, Any]]:
        """Show one request."""
        view = await gmi.watch.view_for(read_head(request.scope).secret, request_id)
        return await self._recorded(request, view, gmi)

    @delete("/requests/{request_id:str}", status_code=200, summary="Stop a request")
    async def cancel(
        self, request: Asking, request_id: RequestId, gmi: NamedDependency[GmiQueue]
    ) -> Response[dict[str, Any]]:
        """Stop one request. One that has ended stays as it is."""
        view = await gmi.watch.cancel(read_head(request.scope).secret, request_id)
        return await self._recorded(request, view, gmi)

    async def _recorded(self, request: Asking, view: View, gmi: GmiQueue) -> Response[dict[str, Any]]:
        caller = await gmi.caller(request)
        return Response(record_view(view, caller, gmi.addresses), headers=video_headers(view))


class KeyQueue(_Queue):
    """The queue as callers with an API key reach it."""

    path = f"{PREFIX}/apikey"

    @get("/models", summary="The names of all models that can be called")
    async def list_models(self, request: Asking, gmi: NamedDependency[GmiQueue]) -> dict[str, Any]:
        """List the names of models."""
        return {"model_ids": gmi.ids(await gmi.caller(request))}


class ShortQueue(KeyQueue):
    """The same, under the short path that some pages of GMI print."""

    path = "/api/v1/apikey"


class AccountQueue(_Queue):
    """The queue as callers who have signed in reach it."""

    path = PREFIX

    @get("/models", summary="All models that can be called")
    async def list_models(self, request: Asking, gmi: NamedDependency[GmiQueue]) -> dict[str, Any]:
        """List models."""
        caller = await gmi.caller(request)
        models = gmi.for_sale(caller)
        return {"models": [model_view(model, gmi.floor.workers_of(model), caller.account_id, True) for model in models]}
