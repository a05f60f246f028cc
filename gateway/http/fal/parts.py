"""Uploads in parts, as fal's client makes them of files above 100 MiB. No state is kept between its calls.

Each part is stored as it comes, and the entity tag of its answer says where, signed. The last call names all tags: the
parts are read in their order, become one file, and are removed. Parts that nobody joins have no owner, and the sweeper
removes them in time.
"""

import hmac
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from litestar.types import Scope
from msgspec import Meta

from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from gateway.errors import FaregateError, InvalidRequest, NotFound, Unavailable
from gateway.http.endpoint import Exchange
from gateway.http.errors import Headers
from gateway.http.fal.calls import header
from gateway.http.fal.storage import Storage, body_pieces, keep_s_of, named_file
from gateway.http.incoming import Incoming
from gateway.http.raw import decode, read_body, send_bytes, send_json
from gateway.media.addresses import Addresses
from gateway.media.files import Files, new_file_id

MOST_PARTS = 10_000
MOST_LIST_BYTES = 4 * 1024 * 1024
_PRIVATE: Headers = [(b"cache-control", b"no-store")]


class PartTag(msgspec.Struct, frozen=True):
    """One part, as the client names it in the end."""

    number: Annotated[int, Meta(ge=1, le=MOST_PARTS)] = msgspec.field(name="partNumber")
    etag: Annotated[str, Meta(max_length=400)]


class PartList(msgspec.Struct, frozen=True):
    """All parts of a file."""

    parts: Annotated[list[PartTag], Meta(min_length=1, max_length=MOST_PARTS)]


_LIST = msgspec.json.Decoder(PartList)


class Parts:
    """Serves uploads in parts."""

    def __init__(self, storage: Storage, files: Files, blobs: BlobStore, addresses: Addresses) -> None:
        self._storage = storage
        self._files = files
        self._blobs = blobs
        self._addresses = addresses

    async def begin(self, scope: Scope, exchange: Exchange) -> None:
        """Name a file that is to come, and its upload: `POST /fal/files/upload/multipart`."""
        account_id = await self._storage.uploader(exchange.head.secret)
        file_id, name = new_file_id(), named_file(header(scope, b"x-fal-file-name"))
        words = msgspec.json.encode((keep_s_of(scope) or 0, name)).hex()
        upload = f"{words}.{self._addresses.ticket(f'parts {account_id} {file_id} {words}')}"
        told = {"access_url": self._storage.shown_at(account_id, file_id), "uploadId": upload}
        await send_json(exchange.send, 200, list(_PRIVATE), told)

    async def put(self, exchange: Exchange, file_id: str, upload: str, number: str) -> None:
        """Keep one part: `PUT {access_url}/multipart/{uploadId}/{number}`."""
        incoming = Incoming(exchange.receive)
        try:
            account_id = await self._storage.uploader(exchange.head.secret)
            self._read(account_id, file_id, upload)
            if not number.isdecimal() or not 0 < int(number[:6]) <= MOST_PARTS:
                raise InvalidRequest(f"Parts are numbered from 1 to {MOST_PARTS}.", param="partNumber")
            blob = await self._files.receive_part(body_pieces(incoming))
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise
        tag = f'"{blob}:{self._tag(account_id, file_id, int(number), blob)}"'
        await send_bytes(exchange.send, 200, [*_PRIVATE, (b"etag", tag.encode())], b"")

    async def complete(self, exchange: Exchange, file_id: str, upload: str) -> None:
        """Join the parts: `POST {access_url}/multipart/{uploadId}/complete`."""
        account_id = await self._storage.uploader(exchange.head.secret)
        keep_s, name = self._read(account_id, file_id, upload)
        listed = decode(_LIST, await read_body(exchange.receive, exchange.head, MOST_LIST_BYTES))
        blobs = self._ordered(account_id, file_id, listed.parts)
        await self._storage.kept(self._joined(blobs), account_id, file_id, name, keep_s or None)
        await self._files.drop_parts(blobs)
        await send_json(exchange.send, 200, list(_PRIVATE), {"url": self._storage.shown_at(account_id, file_id)})

    def _read(self, account_id: int, file_id: str, upload: str) -> tuple[int, str]:
        """Read what the id of an upload says: for how long the file is kept, and its name. Raises NotFound."""
        words, _, signature = upload.partition(".")
        known = self._addresses.ticket(f"parts {account_id} {file_id} {words}")
        if not hmac.compare_digest(known.encode(), signature.encode("utf-8", "replace")):
            raise NotFound("There is no such upload.", code="file_not_found")
        return msgspec.json.decode(bytes.fromhex(words), type=tuple[int, str])

    def _tag(self, account_id: int, file_id: str, number: int, blob: str) -> str:
        return self._addresses.ticket(f"part {account_id} {file_id} {number} {blob}")

    def _ordered(self, account_id: int, file_id: str, parts: Sequence[PartTag]) -> list[str]:
        """Give the blobs of the parts in their order. Raises InvalidRequest for tags that were not given."""
        found: dict[int, str] = {}
        for part in parts:
            blob, _, signature = part.etag.strip('"').rpartition(":")
            known = self._tag(account_id, file_id, part.number, blob).encode()
            if not hmac.compare_digest(known, signature.encode("utf-8", "replace")):
                raise InvalidRequest("This tag was not given to a part of this file.", param="parts")
            found[part.number] = blob
        if sorted(found) != list(range(1, len(found) + 1)):
            raise InvalidRequest("A part is missing: they are numbered from 1 without a gap.", param="parts")
        return [found[number] for number in sorted(found)]

    async def _joined(self, blobs: Sequence[str]) -> AsyncIterator[bytes]:
        for blob in blobs:
            try:
                pieces = await self._blobs.read(blob)
            except BlobMissing:
                raise InvalidRequest("A part is no longer kept; send the file again.", param="parts") from None
            except BlobsAway:
                raise Unavailable("The store for media is away for the moment; try again.", retry_after_s=1) from None
            async for piece in pieces:
                yield piece
