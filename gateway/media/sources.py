"""What a caller may put into a media field: a data URL, an address, there or here, or the id of an uploaded file."""

import base64
import binascii
import contextlib
from collections.abc import AsyncGenerator

from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from gateway.contract.inputs import Media
from gateway.errors import InvalidRequest, NotFound, Unavailable
from gateway.media.addresses import Addresses
from gateway.media.fetch import Fetcher
from gateway.media.files import FILE_PREFIX, Files
from gateway.media.inlet import Intake
from gateway.media.limits import KINDS

STEP_CHARS = 256 * 1024
"""Characters of base64 decoded at once: a multiple of four."""


class Sources:
    """Turns what a caller names into media that lie in the store. One a gateway process."""

    def __init__(self, fetcher: Fetcher, files: Files, addresses: Addresses, blobs: BlobStore) -> None:
        self._fetcher = fetcher
        self._files = files
        self._addresses = addresses
        self._blobs = blobs

    async def check_address(self, text: str, param: str) -> None:
        """Judge an address that is to be called later. Raises UrlNotAllowed naming `param`."""
        await self._fetcher.check(text, param)

    async def media(self, intake: Intake, account_id: int, source: str, field: str, param: str) -> Media:
        """Take in what `source` names, for the call of `intake`. Raises FaregateError naming `param`."""
        if source.startswith(FILE_PREFIX):
            return await self._files.media(account_id, source, KINDS[field], param)
        if source[:5].lower() == "data:":
            pieces = _data(source, param)
        elif (name := self._own(source, param)) is not None:
            pieces = self._stored(name, param)
        elif source[:8].lower().startswith(("http://", "https://")):
            pieces = self._fetcher.pieces(source, param)
        else:
            raise InvalidRequest(
                "Give a data URL, an http or https address, or the id of an uploaded file.", param=param
            )
        async with contextlib.aclosing(pieces):
            return await intake.take(pieces, field, param)

    def _own(self, source: str, param: str) -> str | None:
        """Name the blob of an address that was given here: it is read from the store, and fetched from nowhere."""
        try:
            return self._addresses.named(source)
        except NotFound as error:
            error.param = param
            raise

    async def _stored(self, name: str, param: str) -> AsyncGenerator[bytes, None]:
        try:
            pieces = await self._blobs.read(name)
        except (BlobMissing, ValueError):
            raise NotFound("This file is no longer kept.", param=param) from None
        except BlobsAway:
            raise Unavailable("The store for media is away for the moment; try again.", retry_after_s=1.0) from None
        async for piece in pieces:
            yield piece


async def _data(url: str, param: str) -> AsyncGenerator[bytes, None]:
    """Decode a data URL (RFC 2397) in base64. Its own word about its type is not read."""
    head, comma, _ = url[:512].partition(",")
    if not comma or not head.lower().endswith(";base64"):
        raise InvalidRequest("A data URL must be in base64: data:image/png;base64,...", param=param)
    for at in range(len(head) + 1, len(url), STEP_CHARS):
        try:
            yield base64.b64decode(url[at : at + STEP_CHARS], validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequest("The data URL is not valid base64.", param=param) from None
