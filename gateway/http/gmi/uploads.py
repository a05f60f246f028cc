"""Uploads as GMI does them: an address is asked for, and the bytes are put there, within a quarter of an hour.

The address is signed for its account and for one `Content-Type`. What comes is looked at like every upload, whatever
it says that it is; the public address then names it in payloads.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, cast

import msgspec
from litestar import Controller, Response, post, put
from litestar.di import NamedDependency
from litestar.params import PathParameter

from gateway.errors import FaregateError, Forbidden, InvalidRequest, NotFound
from gateway.http.dialect import Asking
from gateway.http.errors import gmi_body
from gateway.http.gmi.bodies import FileType, UploadBody
from gateway.http.gmi.queue import PREFIX, GmiQueue
from gateway.http.handlers import handlers_of
from gateway.http.incoming import Incoming
from gateway.http.raw import decode, read_head
from gateway.media.addresses import Addresses
from gateway.media.files import Files, Upload, new_file_id

LASTS_S = 899
IDLE_S = 30.0
"""How long an upload may stand still."""
TYPES: dict[FileType, tuple[str, ...]] = {
    "jpeg": ("image/jpeg",),
    "jpg": ("image/jpg",),
    "png": ("image/png",),
    "mp4": ("video/mp4",),
    "mp3": ("audio/mpeg", "audio/mp3"),
    "wav": ("audio/wav",),
}
"""What must be said of each type of file. Of MP3 GMI's clients say the one or the other."""

_BODY = msgspec.json.Decoder(UploadBody)
FileId = Annotated[str, PathParameter(description="The id that the file will have")]


class _Uploads(Controller):
    """Asking where to put a file."""

    tags = ("GMI",)
    exception_handlers = handlers_of(gmi_body)

    @post("/upload-url", status_code=200, summary="An address to put a file at, and the one that names it then")
    async def ask(self, request: Asking, gmi: NamedDependency[GmiQueue]) -> dict[str, Any]:
        """Give an address for one file of this account."""
        body = decode(_BODY, await gmi.body(request))
        account_id, file_id = (await gmi.caller(request)).account_id, new_file_id()
        expires, signature = gmi.addresses.stamp(_stamped(file_id, str(account_id), body.file_type), LASTS_S)
        query = f"account={account_id}&type={body.file_type}&expires={expires}&signature={signature}"
        return {
            "upload_url": f"{gmi.base}{PREFIX}/uploads/{file_id}?{query}",
            "public_url": f"{gmi.base}/v1/files/{file_id}/content",
        }


class KeyUploads(_Uploads):
    """The same, for callers with an API key."""

    path = f"{PREFIX}/apikey"


class ShortUploads(_Uploads):
    """The same, under the short path."""

    path = "/api/v1/apikey"


class AccountUploads(_Uploads):
    """The same, for callers who have signed in."""

    path = PREFIX


class PutController(Controller):
    """Where files are put."""

    path = f"{PREFIX}/uploads"
    tags = ("GMI",)
    exception_handlers = handlers_of(gmi_body)

    @put("/{file_id:str}", status_code=200, request_max_body_size=None, summary="Put a file at its signed address")
    async def put_file(
        self,
        request: Asking,
        file_id: FileId,
        addresses: NamedDependency[Addresses],
        files: NamedDependency[Files],
    ) -> Response[None]:
        """Stream a file into the store. No key is needed: the address is the right to one file."""
        incoming = Incoming(request.receive)
        try:
            account_id, kind = _allowed(addresses, file_id, request.query_params)
            if request.headers.get("content-type", "") not in TYPES[kind]:
                raise Forbidden(f"The Content-Type must be {TYPES[kind][0]}, as this address was signed for.")
            if read_head(request.scope).content_length == 0:
                raise InvalidRequest("The file is empty.")
            await _keep(files, account_id, file_id, f"{file_id}.{kind}", incoming)
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise
        return Response(None, status_code=200)


def _allowed(addresses: Addresses, file_id: str, query: Mapping[str, str]) -> tuple[int, FileType]:
    """Give the account and the type of file that an address was made for. Raises Forbidden."""
    account, kind = query.get("account", ""), query.get("type", "")
    try:
        addresses.check(_stamped(file_id, account, kind), query.get("expires", ""), query.get("signature", ""))
    except NotFound:
        raise Forbidden("This address was not signed here, or its time has passed.") from None
    return int(account), cast(FileType, kind)


def _stamped(file_id: str, account: str, kind: str) -> str:
    return f"upload:{file_id}:{account}:{kind}"  # no name of a blob has a colon


async def _keep(files: Files, account_id: int, file_id: str, filename: str, incoming: Incoming) -> None:
    try:
        await files.show(account_id, file_id)
    except NotFound:
        received = await files.receive(_pieces(incoming), file_id)
        await files.keep(account_id, received, Upload(filename=filename, purpose="user_data"))
    else:
        raise Forbidden("A file was put at this address already.")


async def _pieces(incoming: Incoming) -> AsyncIterator[bytes]:
    """Give the body as it comes. Raises InvalidRequest where it stands still or breaks off."""
    while True:
        try:
            async with asyncio.timeout(IDLE_S):
                message = await incoming()
        except TimeoutError:
            raise InvalidRequest("The upload stood still for too long.") from None
        if message["type"] != "http.request":
            raise InvalidRequest("The upload broke off.")
        if piece := message.get("body", b""):
            yield piece
        if not message.get("more_body"):
            return
