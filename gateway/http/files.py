"""`/v1/files`: uploads, streamed into the store, in the shapes of OpenAI's Files API."""

import contextlib
from typing import Annotated, Any, Literal

from litestar import Controller, HttpMethod, Request, Response, delete, get, post, route
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.types import Scope

from gateway.blobs.store import BlobStore
from gateway.errors import FaregateError, InvalidRequest, Unavailable
from gateway.flow.authenticate import identify
from gateway.flow.way import Way
from gateway.http.blobs import blob_answer, per_method
from gateway.http.incoming import Incoming
from gateway.http.multipart import Form, Part, read_form
from gateway.http.native.requests import secret_of
from gateway.ledger.keyring import Caller
from gateway.media.files import Files, Received, StoredFile, Upload
from gateway.media.inlet import Inlet

FileId = Annotated[str, PathParameter(description="`file_` and 32 hexadecimal digits")]
After = Annotated[str | None, QueryParameter(description="The id of the last file of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="How many at most")]
Order = Annotated[Literal["asc", "desc"], QueryParameter(description="By age, the youngest first or last")]
Purpose = Annotated[str | None, QueryParameter(description="Only files of this purpose")]

MOST_NAME_CHARS = 255
MOST_PURPOSE_CHARS = 64
_EXPIRES = {"expires_after[anchor]", "expires_after[seconds]"}
_FIELDS = {"purpose"} | _EXPIRES
MOST_EXPIRES_S = 10 * 365 * 86_400


class FilesController(Controller):
    """The files of the calling account."""

    path = "/v1/files"
    tags = ("Files",)

    @post(status_code=200, summary="Upload a file, as multipart/form-data with `file` and `purpose`",
          request_max_body_size=None)  # fmt: skip
    async def upload(
        self,
        request: Request[Any, Any, State],
        way: NamedDependency[Way],
        files: NamedDependency[Files],
        inlet: NamedDependency[Inlet],
    ) -> dict[str, Any]:
        """Stream a file into the store. What is media is looked at, and refused like any other input."""
        incoming = Incoming(request.receive)
        try:
            caller = await _caller(request, way)
            return await self._upload(request.scope, incoming, caller, files, inlet.most_upload_bytes)
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise

    async def _upload(
        self, scope: Scope, incoming: Incoming, caller: Caller, files: Files, most_bytes: int
    ) -> dict[str, Any]:
        received: list[Received] = []
        names: list[str] = []

        async def take(part: Part) -> None:
            if part.name != "file" or received:
                raise InvalidRequest("Send one file, as `file`.", code="unknown_field", param=part.name[:64])
            received.append(await files.receive(part.pieces))
            names.append(part.filename)

        try:
            form = await read_form(scope, incoming, take, most_bytes)
            if not received:
                raise InvalidRequest("A file is missing.", param="file")
            return file_view(await files.keep(caller.account_id, received[0], _upload(form, names[0])))
        except Unavailable:
            raise  # whether it was kept is not known: the sweeper finds out
        except FaregateError:
            with contextlib.suppress(Unavailable):
                for each in received:
                    await files.drop(each)
            raise

    @get(summary="The files of this account, by age")
    async def page(
        self,
        request: Request[Any, Any, State],
        way: NamedDependency[Way],
        files: NamedDependency[Files],
        after: After = None,
        limit: Limit = 100,
        order: Order = "desc",
        purpose: Purpose = None,
    ) -> dict[str, Any]:
        """List one page."""
        caller = await _caller(request, way)
        found = await files.page(caller.account_id, after=after, limit=limit + 1, order=order, purpose=purpose)
        data = [file_view(each) for each in found[:limit]]
        return {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": len(found) > limit,
        }

    @get("/{file_id:str}", summary="One file")
    async def show(
        self, request: Request[Any, Any, State], file_id: FileId, way: NamedDependency[Way],
        files: NamedDependency[Files],
    ) -> dict[str, Any]:  # fmt: skip
        """Show one file."""
        caller = await _caller(request, way)
        return file_view(await files.show(caller.account_id, file_id))

    @route("/{file_id:str}/content", http_method=[HttpMethod.GET, HttpMethod.HEAD],
           summary="The bytes of a file; ranges are served", operation_id=per_method("file"))  # fmt: skip
    async def content(
        self,
        request: Request[Any, Any, State],
        file_id: FileId,
        way: NamedDependency[Way],
        files: NamedDependency[Files],
        blobs: NamedDependency[BlobStore],
    ) -> Response[Any]:
        """Give the file, or a part of it."""
        caller = await _caller(request, way)
        kept = await files.show(caller.account_id, file_id)
        return await blob_answer(request, blobs, kept.blob, kept.media_type, kept.filename)

    @delete("/{file_id:str}", status_code=200, summary="Remove a file; requests that wait for it will fail")
    async def remove(
        self, request: Request[Any, Any, State], file_id: FileId, way: NamedDependency[Way],
        files: NamedDependency[Files],
    ) -> dict[str, Any]:  # fmt: skip
        """Remove one file."""
        caller = await _caller(request, way)
        await files.delete(caller.account_id, file_id)
        return {"id": file_id, "object": "file", "deleted": True}


async def _caller(request: Request[Any, Any, State], way: Way) -> Caller:
    return await identify(way.keyring, secret_of(request))


def file_view(kept: StoredFile) -> dict[str, Any]:
    """Show a file as OpenAI's clients expect it, and what was found out about it."""
    return {
        "id": kept.id,
        "object": "file",
        "bytes": kept.size_bytes,
        "created_at": kept.created_s,
        "expires_at": kept.expires_s,
        "filename": kept.filename,
        "purpose": kept.purpose,
        "status": "processed",
        "media_type": kept.media_type,
    }


def _upload(form: Form[None], filename: str) -> Upload:
    for name, _ in form.fields:
        if name not in _FIELDS:
            raise InvalidRequest("This field is not known here.", code="unknown_field", param=name[:64])
    purpose = form.text("purpose")
    if not purpose or len(purpose) > MOST_PURPOSE_CHARS or not purpose.isprintable():
        raise InvalidRequest("Say what the file is for, such as `vision` or `user_data`.", param="purpose")
    seconds = form.text("expires_after[seconds]")
    if seconds is not None and not (seconds.isascii() and seconds.isdigit() and 0 < int(seconds[:12]) < MOST_EXPIRES_S):
        raise InvalidRequest("Give a whole number of seconds.", param="expires_after[seconds]")
    plain = "".join(each for each in filename if each.isprintable())[:MOST_NAME_CHARS]
    return Upload(filename=plain or "file", purpose=purpose, keep_s=int(seconds) if seconds else None)
