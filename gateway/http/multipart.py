"""Reading `multipart/form-data` (RFC 7578) as it comes: fields are collected, files are handed on piece by piece."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec
from litestar.types import Receive, Scope
from multipart import MultipartError, MultipartSegment, ParserLimitReached, PushMultipartParser, parse_options_header

from gateway.contract.inputs import Media
from gateway.errors import InvalidRequest, TooLarge
from gateway.media.inlet import Intake

MOST_PARTS = 64
MOST_FIELD_BYTES = 1024 * 1024
IDLE_S = 30.0
"""How long an upload may stand still."""

T = TypeVar("T")


class Part(msgspec.Struct, frozen=True):
    """The head of a file in a form, and its bytes as they come."""

    name: str
    filename: str
    media_type: str
    """As the caller says: never believed."""
    pieces: AsyncIterator[bytes]


class Form(msgspec.Struct, Generic[T], frozen=True):
    """A form that has been read: fields and files in their order, names as often as they came."""

    fields: list[tuple[str, str]]
    files: list[tuple[str, T]]
    digest: bytes
    """SHA-256 over the names and contents of all parts, whatever the boundary: for the comparison of repeats."""

    def text(self, name: str) -> str | None:
        """Give a field's last value; None where it did not come."""
        return next((value for each, value in reversed(self.fields) if each == name), None)


async def read_media_form(scope: Scope, receive: Receive, intake: Intake, files: dict[str, str]) -> Form[Media]:
    """Read a form whose files go straight to the store.

    `files` maps the names of file parts to the media fields that they stand for, as `{"image[]": "images"}`. A part of
    such a name that has no file name is a field: an address, a data URL or a file id. Raises InvalidRequest (400)
    that names the part, TooLarge (413), Unprocessable (422).
    """

    async def take(part: Part) -> Media:
        if part.name not in files:
            raise InvalidRequest("No file is taken here.", code="unknown_field", param=part.name[:64])
        return await intake.take(part.pieces, files[part.name], part.name)

    return await read_form(scope, receive, take, intake.most_bytes)


async def read_form(scope: Scope, receive: Receive, take: Callable[[Part], Awaitable[T]], most_bytes: int) -> Form[T]:
    """Read a form, handing each file to `take` as it comes. Raises InvalidRequest, TooLarge, and what `take` raises."""
    parser = PushMultipartParser(
        _boundary(scope), max_segment_count=MOST_PARTS, max_header_size=4096, max_header_count=8, strict=False
    )
    form: Form[T] = Form([], [], b"")
    digest = hashlib.sha256()
    try:
        async with contextlib.aclosing(_events(parser, receive, most_bytes)) as events:
            async for segment in events:
                if not isinstance(segment, MultipartSegment):
                    continue  # what `take` has left of its file
                if not segment.name:
                    raise InvalidRequest("Each part of a form needs a name.", code="invalid_form")
                digest.update(f"\0{segment.name}\0".encode())
                pieces = _pieces(events, digest)
                if segment.filename is None:
                    form.fields.append((segment.name, await _value(pieces, segment.name)))
                else:
                    part = Part(segment.name, segment.filename, segment.content_type or "", pieces)
                    form.files.append((segment.name, await take(part)))
    except ParserLimitReached:
        raise TooLarge(f"A form may have at most {MOST_PARTS} parts, with short headers.") from None
    except MultipartError as error:
        raise InvalidRequest(f"The body is not a valid form: {error}.", code="invalid_form") from None
    return msgspec.structs.replace(form, digest=digest.digest())


def _boundary(scope: Scope) -> str:
    given = next((value for name, value in scope["headers"] if name == b"content-type"), b"").decode("latin-1")
    kind, options = parse_options_header(given)
    boundary: str = options.get("boundary", "")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= 70 or not boundary.isascii():
        raise InvalidRequest("Send the body as multipart/form-data with a boundary.", code="invalid_form")
    return boundary


async def _events(parser: PushMultipartParser, receive: Receive, most_bytes: int) -> AsyncGenerator[Any, None]:
    """Give what the parser finds, reading on when it needs more. Only one piece of the body is held."""
    size = 0
    with parser:
        while not parser.closed:
            try:
                async with asyncio.timeout(IDLE_S):
                    message: Any = await receive()
            except TimeoutError:
                raise InvalidRequest("The upload stood still for too long.", code="invalid_form") from None
            if message["type"] == "http.disconnect":
                raise InvalidRequest("The upload broke off.", code="invalid_form")
            body = message.get("body", b"")
            size += len(body)
            if size > most_bytes:
                raise TooLarge(f"The body may have at most {most_bytes} bytes.")
            for event in parser.parse(body) if body else ():
                yield event
            if not message.get("more_body"):
                return


async def _pieces(events: AsyncIterator[Any], digest: Any) -> AsyncIterator[bytes]:
    async for event in events:
        if event is None:
            return
        digest.update(event)
        yield event


async def _value(pieces: AsyncIterator[bytes], name: str) -> str:
    value = bytearray()
    async for piece in pieces:
        value += piece
        if len(value) > MOST_FIELD_BYTES:
            raise TooLarge(f"A field may have at most {MOST_FIELD_BYTES} bytes.", param=name[:64])
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("A field is not UTF-8.", param=name[:64]) from None
