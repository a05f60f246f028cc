"""`/replicate/v1/files`: uploads, in the shapes of Replicate's API; their addresses name them in inputs."""

import contextlib
from typing import Annotated, Any

from litestar import Controller, delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.types import Scope

from gateway.errors import FaregateError, InvalidRequest, Unavailable
from gateway.http.dialect import Asking
from gateway.http.errors import replicate_body
from gateway.http.handlers import handlers_of
from gateway.http.incoming import Incoming
from gateway.http.multipart import Part, read_form
from gateway.http.replicate.predictions import Replicate
from gateway.http.replicate.views import PREFIX, instant
from gateway.media.files import Files, Received, StoredFile, Upload

PAGE = 100
MOST_NAME_CHARS = 255
_FIELDS = ("metadata", "filename", "type")

FileId = Annotated[str, PathParameter(description="`file_` and 32 hexadecimal digits")]
Cursor = Annotated[str, QueryParameter(description="Where the page before ended", max_length=64)]


class ReplicateFilesController(Controller):
    """The files of an account."""

    path = f"{PREFIX}/files"
    tags = ("Replicate",)
    exception_handlers = handlers_of(replicate_body)

    @post(status_code=201, summary="Upload a file, as multipart/form-data with `content`",
          request_max_body_size=None)  # fmt: skip
    async def upload(
        self, request: Asking, replicate: NamedDependency[Replicate], files: NamedDependency[Files]
    ) -> dict[str, Any]:
        """Stream a file into the store. What is said of its type and its metadata is not kept."""
        incoming = Incoming(request.receive)
        try:
            account_id = (await replicate.caller(request)).account_id
            most_bytes = replicate.inlet.most_upload_bytes
            kept = await _received(request.scope, incoming, files, account_id, most_bytes)
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise
        return file_view(kept, replicate.base)

    @get(summary="The files of this account, the latest first")
    async def index(
        self, request: Asking, replicate: NamedDependency[Replicate], files: NamedDependency[Files], cursor: Cursor = ""
    ) -> dict[str, Any]:
        """List one page."""
        account_id = (await replicate.caller(request)).account_id
        found = await files.page(account_id, after=cursor or None, limit=PAGE + 1, order="desc", purpose=None)
        more = len(found) > PAGE
        following = f"{replicate.base}{PREFIX}/files?cursor={found[PAGE - 1].id}" if more else None
        results = [file_view(kept, replicate.base) for kept in found[:PAGE]]
        return {"previous": None, "next": following, "results": results}

    @get("/{file_id:str}", summary="One file")
    async def show(
        self, request: Asking, file_id: FileId, replicate: NamedDependency[Replicate], files: NamedDependency[Files]
    ) -> dict[str, Any]:
        """Show one file."""
        return file_view(await files.show((await replicate.caller(request)).account_id, file_id), replicate.base)

    @delete("/{file_id:str}", status_code=204, summary="Remove a file; predictions that wait for it will fail")
    async def remove(
        self, request: Asking, file_id: FileId, replicate: NamedDependency[Replicate], files: NamedDependency[Files]
    ) -> None:
        """Remove one file."""
        await files.delete((await replicate.caller(request)).account_id, file_id)


async def _received(scope: Scope, incoming: Incoming, files: Files, account_id: int, most_bytes: int) -> StoredFile:
    """Take a form with one file in, and keep the file. Nothing of a form that is refused is kept."""
    received: list[Received] = []
    names: list[str] = []

    async def take(part: Part) -> None:
        if part.name != "content" or received:
            raise InvalidRequest("Send one file, as `content`.", code="unknown_field", param=part.name[:64])
        received.append(await files.receive(part.pieces))
        names.append(part.filename)

    try:
        form = await read_form(scope, incoming, take, most_bytes)
        for name, _ in form.fields:
            if name not in _FIELDS:
                raise InvalidRequest("This field is not known here.", code="unknown_field", param=name[:64])
        if not received:
            raise InvalidRequest("A file is missing.", param="content")
        given = form.text("filename") or names[0]
        plain = "".join(each for each in given if each.isprintable())[:MOST_NAME_CHARS]
        return await files.keep(account_id, received[0], Upload(filename=plain or "file", purpose="user_data"))
    except Unavailable:
        raise  # whether it was kept is not known: the sweeper finds out
    except FaregateError:
        with contextlib.suppress(Unavailable):
            for each in received:
                await files.drop(each)
        raise


def file_view(kept: StoredFile, base: str) -> dict[str, Any]:
    """Show a file. Its content never changes, so its id will do as the tag of it."""
    return {
        "id": kept.id,
        "name": kept.filename,
        "content_type": kept.media_type,
        "size": kept.size_bytes,
        "etag": kept.id,
        "checksums": {},
        "metadata": {},
        "created_at": instant(kept.created_s * 1_000_000),
        "expires_at": instant(kept.expires_s * 1_000_000),
        "urls": {"get": f"{base}{PREFIX}/files/{kept.id}"},
    }
