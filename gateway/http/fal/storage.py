"""fal's storage over our files: what `upload`, `upload_file` and `upload_image` of its clients call.

Two ways lead to the same: a token and one POST (`fal_v3`), or an address that takes one PUT (`fal`). What comes of
either is an address that shows the file to whoever has it, for as long as it is kept, and that all families take in
the place of its id.
"""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar.types import Receive, Scope

from gateway.errors import FaregateError, InvalidRequest, NotFound, Unauthorized
from gateway.flow.authenticate import identify
from gateway.flow.way import Way
from gateway.http.endpoint import Exchange
from gateway.http.fal.calls import header, query
from gateway.http.files import MOST_NAME_CHARS
from gateway.http.incoming import Incoming
from gateway.http.multipart import IDLE_S
from gateway.http.raw import decode, read_body, send_bytes, send_json
from gateway.media.addresses import Addresses
from gateway.media.files import Files, Upload, new_file_id

TOKEN_S = 600
UPLOAD_S = 3600
MOST_JSON_BYTES = 16 * 1024
_PURPOSE = "user_data"


class Initiate(msgspec.Struct, frozen=True):
    """What is said of a file before it comes. What its type is, is found out by looking at it."""

    file_name: str = "upload.bin"
    content_type: str = ""


class Lifecycle(msgspec.Struct, frozen=True):
    """How long a caller wants a file kept, and who else may see it."""

    expiration_duration_seconds: int | None = None
    initial_acl: Any = None


_INITIATE = msgspec.json.Decoder(Initiate)
_LIFECYCLE = msgspec.json.Decoder(Lifecycle)


class Storage:
    """Serves uploads."""

    def __init__(self, way: Way, files: Files, addresses: Addresses) -> None:
        self._keyring = way.keyring
        self._files = files
        self._addresses = addresses

    async def token(self, _: Scope, exchange: Exchange) -> None:
        """Give a token that uploads for a while: `POST /fal/storage/auth/token`."""
        caller = await identify(self._keyring, exchange.head.secret)
        expires = int(time.time()) + TOKEN_S
        words = f"{caller.account_id}-{expires}"
        until = datetime.fromtimestamp(expires, UTC).isoformat()
        told = {"token": f"{words}-{self._addresses.ticket('token ' + words)}", "token_type": "Bearer"}
        base = f"{self._addresses.base}/fal"
        await send_json(exchange.send, 200, [_PRIVATE], told | {"base_url": base, "expires_at": until})

    async def upload(self, scope: Scope, exchange: Exchange) -> None:
        """Take one file as the body: `POST /fal/files/upload`."""
        incoming = Incoming(exchange.receive)
        try:
            account_id = await self.uploader(exchange.head.secret)
            keep_s = keep_s_of(scope)
            file_id = new_file_id()
            await self._take(incoming, account_id, file_id, named_file(header(scope, b"x-fal-file-name")), keep_s)
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise
        await send_json(exchange.send, 200, [_PRIVATE], {"access_url": self.shown_at(account_id, file_id)})

    async def initiate(self, scope: Scope, exchange: Exchange) -> None:
        """Give the address that takes a file, and the one that will show it: `POST /fal/storage/upload/initiate`."""
        caller = await identify(self._keyring, exchange.head.secret)
        said = decode(_INITIATE, await read_body(exchange.receive, exchange.head, MOST_JSON_BYTES))
        keep_s = keep_s_of(scope)
        file_id = new_file_id()
        asked = {
            "account": str(caller.account_id),
            "name": named_file(said.file_name),
            "keep": str(keep_s or 0),
            "expires": str(int(time.time()) + UPLOAD_S),
        }
        query_text = urlencode(asked | {"signature": self._addresses.ticket(_upload_words(file_id, asked))})
        upload_url = f"{self._addresses.base}/fal/storage/upload/{file_id}?{query_text}"
        told = {"file_url": self.shown_at(caller.account_id, file_id), "upload_url": upload_url}
        await send_json(exchange.send, 200, [_PRIVATE], told)

    async def put(self, scope: Scope, exchange: Exchange, file_id: str) -> None:
        """Take the file of an address that was given; sent again, it stays as it is."""
        asked = {field: query(scope, field) for field in ("account", "name", "keep", "expires")}
        signature = query(scope, "signature").encode("utf-8", "replace")
        incoming = Incoming(exchange.receive)
        try:
            if not hmac.compare_digest(self._addresses.ticket(_upload_words(file_id, asked)).encode(), signature):
                raise NotFound("This address takes no file.")
            if int(asked["expires"]) < time.time():
                raise NotFound("This address takes no file any more; ask for a new one.")
            await self._put(incoming, file_id, asked)
        except FaregateError as error:
            error.hangs_up = not await incoming.drained()
            raise
        await send_bytes(exchange.send, 200, [], b"")

    async def _put(self, incoming: Incoming, file_id: str, asked: dict[str, str]) -> None:
        account_id = int(asked["account"])
        try:
            await self._files.show(account_id, file_id)
        except NotFound:
            await self._take(incoming, account_id, file_id, asked["name"], int(asked["keep"]) or None)
        else:
            async for piece in body_pieces(incoming):
                del piece

    async def show(self, _: Scope, exchange: Exchange, ticket: str, file_id: str) -> None:
        """Lead whoever has the address of a file to its bytes: `GET /fal/{ticket}/files/{file_id}`."""
        account, signature = ticket.partition("-")[::2]
        known = self._addresses.ticket(f"file {account} {file_id}").encode()
        if not hmac.compare_digest(known, signature.encode("utf-8", "replace")) or not account.isdecimal():
            raise NotFound("There is no such file.", code="file_not_found")
        kept = await self._files.show(int(account), file_id)
        location = self._addresses.signed_url(kept.blob).encode()
        await send_bytes(exchange.send, 307, [_PRIVATE, (b"location", location)], b"")

    async def _take(self, incoming: Receive, account_id: int, file_id: str, name: str, keep_s: int | None) -> None:
        await self.kept(body_pieces(incoming), account_id, file_id, name, keep_s)

    async def kept(
        self, pieces: AsyncIterator[bytes], account_id: int, file_id: str, name: str, keep_s: int | None
    ) -> None:
        """Make a file of these bytes one of the account's."""
        received = await self._files.receive(pieces, file_id)
        await self._files.keep(account_id, received, Upload(filename=name, purpose=_PURPOSE, keep_s=keep_s))

    async def uploader(self, secret: str) -> int:
        """Say whose token or key it is. Raises Unauthorized."""
        account, _, rest = secret.partition("-")
        expires, _, signature = rest.partition("-")
        if account.isdecimal() and expires.isdecimal() and len(secret) < 200:
            known = self._addresses.ticket(f"token {account}-{expires}")
            if hmac.compare_digest(known.encode(), signature.encode("utf-8", "replace")):
                if int(expires) < time.time():
                    raise Unauthorized("This upload token has expired; ask for a new one.")
                return int(account)
        return (await identify(self._keyring, secret)).account_id

    def shown_at(self, account_id: int, file_id: str) -> str:
        """Give the address that shows a file for as long as it is kept."""
        ticket = f"{account_id}-{self._addresses.ticket(f'file {account_id} {file_id}')}"
        return f"{self._addresses.base}/fal/{ticket}/files/{file_id}"


_PRIVATE = (b"cache-control", b"no-store")


def _upload_words(file_id: str, asked: dict[str, str]) -> str:
    return "\n".join(("upload", file_id, asked["account"], asked["name"], asked["keep"], asked["expires"]))


def named_file(given: str) -> str:
    """Read a file's name as it may be kept."""
    plain = "".join(each for each in given.encode("latin-1", "replace").decode("latin-1") if each.isprintable())
    return plain.rpartition("/")[2][:MOST_NAME_CHARS] or "upload.bin"


def keep_s_of(scope: Scope) -> int | None:
    """Read for how long a file is to be kept; None leaves it to the account."""
    text = header(scope, b"x-fal-object-lifecycle-preference") or header(scope, b"x-fal-object-lifecycle")
    if not text:
        return None
    wanted = decode(_LIFECYCLE, text.encode("latin-1"))
    if wanted.initial_acl is not None:
        raise InvalidRequest("Who may see a file is not decided here: whoever has its address.", param="initial_acl")
    seconds = wanted.expiration_duration_seconds
    if seconds is not None and not 0 < seconds < 10 * 365 * 86_400:
        raise InvalidRequest("Give a whole number of seconds above 0.", param="expiration_duration_seconds")
    return seconds


async def body_pieces(receive: Receive) -> AsyncIterator[bytes]:
    """Give a body as it comes. Raises InvalidRequest where it stands still or breaks off."""
    more = True
    while more:
        try:
            async with asyncio.timeout(IDLE_S):
                message: Any = await receive()
        except TimeoutError:
            raise InvalidRequest("The upload stood still for too long.", code="invalid_form") from None
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The upload broke off.", code="invalid_form")
        yield message.get("body", b"")
        more = message.get("more_body", False)
