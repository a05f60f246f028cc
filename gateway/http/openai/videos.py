"""`/v1/videos`: asked for, looked at, listed, fetched, made once more with other words, and thrown away."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Controller, HttpMethod, Request, Response, delete, get, post, route
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from gateway.blobs.store import BlobStore
from gateway.contract.events import MediaOutput
from gateway.errors import Conflict, NotFound
from gateway.flow.authenticate import identify
from gateway.flow.call import Call
from gateway.flow.shelf import Shelf
from gateway.flow.view import View
from gateway.flow.watch import Watch
from gateway.flow.way import Way
from gateway.http.blobs import blob_answer, per_method
from gateway.http.endpoint import Desk
from gateway.http.errors import openai_body
from gateway.http.handlers import handlers_of
from gateway.http.media import MediaReader
from gateway.http.openai.media_bodies import RemixBody
from gateway.http.openai.parse import Received, media_call
from gateway.http.openai.video_calls import VideoFamily, remix_offers
from gateway.http.openai.video_views import video_headers, video_of, video_view
from gateway.http.parts import open_blob
from gateway.http.raw import decode, read_body, read_head
from gateway.ledger.admission import Replay
from gateway.media.inlet import Inlet, Intake

_REMIX = msgspec.json.Decoder(RemixBody)

VideoId = Annotated[str, PathParameter(description="The id of the video, which is its request's")]
Variant = Annotated[
    Literal["video", "thumbnail", "spritesheet"], QueryParameter(description="The video, or a picture for it")
]
After = Annotated[str, QueryParameter(description="The id of the last video of the page before", max_length=64)]
Limit = Annotated[int, QueryParameter(ge=1, le=100, description="How many to list")]
Order = Annotated[Literal["asc", "desc"], QueryParameter(description="The newest first, or the oldest")]

Asked = Request[Any, Any, State]


class Videos:
    """What the calls about videos work with."""

    def __init__(self, desk: Desk, shelf: Shelf) -> None:
        self.way: Way = desk.way
        self.watch: Watch = desk.watch
        self.inlet: Inlet = desk.inlet
        self.blobs: BlobStore = desk.blobs
        self.shelf = shelf
        self.reader = MediaReader(VideoFamily(), desk)
        self.most_bytes = desk.most_bytes

    async def place(self, call: Call) -> View:
        """Put a call on its way, and show it; a repeat shows what it repeats."""
        placed = await self.way.submit(call)
        if isinstance(placed, Replay):
            return await self.watch.view_for(call.secret, placed.request_id)
        view = await self.watch.accepted(placed)
        return msgspec.structs.replace(view, notes=call.notes)

    async def made(self, secret: str, video_id: str, variant: str = "video") -> tuple[View, MediaOutput]:
        """Give a video that is finished, and its file. Raises NotFound, or Conflict while it is not."""
        view = await self.shelf.view_for(secret, video_id)
        if view.status != "succeeded":
            raise Conflict("This video is not completed.", code="video_not_ready", request_id=video_id)
        item = video_of(view, variant)
        if item is None or not item.blob:
            raise NotFound(f"This video has no {variant}.", param="variant")
        return view, item


class VideosController(Controller):
    """The videos of an account."""

    path = "/v1/videos"
    tags = ("OpenAI",)
    exception_handlers = handlers_of(openai_body)

    @post(summary="Ask for a video, as JSON or as a form with input_reference", status_code=200)
    async def create(self, request: Asked, videos: NamedDependency[Videos]) -> Response[dict[str, Any]]:
        """Accept a video; it is looked at by its id."""
        call, _ = await videos.reader.read(read_head(request.scope), request.scope, request.receive)
        return _shown(await videos.place(call))

    @get(summary="The account's videos, a page at a time")
    async def index(
        self,
        request: Asked,
        videos: NamedDependency[Videos],
        after: After = "",
        limit: Limit = 20,
        order: Order = "desc",
    ) -> dict[str, Any]:
        """List videos: open ones, and finished ones that are kept."""
        page, more = await videos.shelf.page(read_head(request.scope).secret, after, limit, order == "desc")
        ids = {"first_id": page[0].id, "last_id": page[-1].id} if page else {"first_id": None, "last_id": None}
        return {"object": "list", "data": [video_view(view) for view in page], "has_more": more} | ids

    @get("/{video_id:str}", summary="How a video stands")
    async def show(
        self, request: Asked, video_id: VideoId, videos: NamedDependency[Videos]
    ) -> Response[dict[str, Any]]:
        """Show one video."""
        return _shown(await videos.shelf.view_for(read_head(request.scope).secret, video_id))

    @delete("/{video_id:str}", status_code=200, summary="Throw a video away; one that still runs is stopped")
    async def remove(self, request: Asked, video_id: VideoId, videos: NamedDependency[Videos]) -> dict[str, Any]:
        """Forget a video and its files. What it cost stays in the books."""
        await videos.shelf.throw_away(read_head(request.scope).secret, video_id)
        return {"id": video_id, "object": "video.deleted", "deleted": True}

    @route(
        "/{video_id:str}/content",
        http_method=[HttpMethod.GET, HttpMethod.HEAD],
        summary="The file of a video; ranges are served",
        operation_id=per_method("video_content"),
    )
    async def content(
        self, request: Asked, video_id: VideoId, videos: NamedDependency[Videos], variant: Variant = "video"
    ) -> Response[Any]:
        """Give the video, its thumbnail, or its sheet of stills."""
        view, item = await videos.made(read_head(request.scope).secret, video_id, variant)
        answer = await blob_answer(request, videos.blobs, item.blob, item.media_type)
        for name, value in video_headers(view).items():
            if name != "cache-control":
                answer.set_header(name, value)
        return answer

    @post("/{video_id:str}/remix", status_code=200, summary="Ask for a video like this one, with other words")
    async def remix(
        self, request: Asked, video_id: VideoId, videos: NamedDependency[Videos]
    ) -> Response[dict[str, Any]]:
        """Accept a video of the same model, size, length and seed."""
        head = read_head(request.scope)
        await identify(videos.way.keyring, head.secret)
        raw = await read_body(request.receive, head, videos.most_bytes)
        asked = decode(_REMIX, raw)
        view, video = await videos.made(head.secret, video_id)
        intake = videos.inlet.open()
        received = Received(head, request.scope, raw)
        try:
            call = await _remix_call(received, asked, view, video, videos, intake)
        except BaseException:
            await intake.discard()
            raise
        return _shown(await videos.place(call))


async def _remix_call(
    received: Received, asked: RemixBody, view: View, video: MediaOutput, videos: Videos, intake: Intake
) -> Call:
    still = video_of(view, "thumbnail")
    image = None
    if still is not None and view.task in ("image-to-video", "talking-head"):
        image = await intake.take(await open_blob(still.blob, videos.blobs), "image", "video_id")
    offers = remix_offers(view.task, video, image, asked)
    notes = {
        "prompt": asked.prompt,
        "remixed_from": view.id,
        "seconds": f"{video.duration_ms / 1000:g}",
        "size": f"{video.width}x{video.height}",
    }
    body = _Remixed(view.model, asked.priority, asked.max_price, asked.models, asked.provider)
    call = media_call(received, body, offers, "async")
    return msgspec.structs.replace(call, notes=notes, intake=intake)


class _Remixed(msgspec.Struct, frozen=True):
    """What a remix says, with the model of the video that it is made from."""

    model: str
    priority: Any
    max_price: Any
    models: Any
    provider: Any


def _shown(view: View) -> Response[dict[str, Any]]:
    return Response(video_view(view), headers=video_headers(view))
