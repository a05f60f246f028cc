"""Reading and answering on bare ASGI, for the families where a typed handler would double the gateway's work.

(Measured: a typed Litestar handler costs 0.05 CPU-ms more a request than an `@asgi` one.)
"""

import hashlib
from typing import Any, TypeVar

import msgspec
from litestar.types import Receive, Scope, Send

from gateway.blobs.store import BlobMissing, BlobsAway, BlobStore
from gateway.errors import FaregateError, InvalidRequest, NotFound, TooLarge, Unavailable
from gateway.http.errors import Headers, error_headers, from_decoding
from gateway.twins import refuse_twins

T = TypeVar("T")

_encode = msgspec.json.encode
MOST_KEY_CHARS = 255


class Head(msgspec.Struct, frozen=True):
    """What the headers of a call say."""

    secret: str
    idempotency_key: str
    prefer: str
    content_length: int


def read_head(scope: Scope) -> Head:
    """Read the headers that matter, in one pass. Raises InvalidRequest for an idempotency key that cannot be kept."""
    secret = key = prefer = ""
    length = -1
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, rest = value.partition(b" ")
            secret = rest.strip().decode("latin-1") if kind.lower() in (b"bearer", b"key", b"token") else ""
        elif name == b"x-api-key":
            secret = secret or value.decode("latin-1")
        elif name == b"idempotency-key":
            key = _idempotency_key(value)
        elif name == b"prefer":
            prefer = value.decode("latin-1")
        elif name == b"content-length":
            length = int(value) if value.isdigit() else -1
    return Head(secret, key, prefer, length)


def _idempotency_key(value: bytes) -> str:
    text = value.decode("latin-1")
    if not text.isprintable() or len(text) > MOST_KEY_CHARS:
        raise InvalidRequest(
            f"Idempotency-Key must be at most {MOST_KEY_CHARS} printable characters.", param="Idempotency-Key"
        )
    return text


def body_hash(head: Head, scope: Scope, body: bytes) -> bytes:
    """Hash the call for the comparison of repeats; empty where it is not idempotent."""
    return hashlib.sha256(scope["path"].encode() + b"\n" + body).digest() if head.idempotency_key else b""


async def read_body(receive: Receive, head: Head, most_bytes: int) -> bytes:
    """Read the whole body. Raises TooLarge before more than `most_bytes` are held."""
    if head.content_length > most_bytes:
        raise TooLarge(f"The body may have at most {most_bytes} bytes.")
    message: Any = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(body) > most_bytes:
            raise TooLarge(f"The body may have at most {most_bytes} bytes.")
        return body
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most_bytes:
            raise TooLarge(f"The body may have at most {most_bytes} bytes.")
    return b"".join(parts)


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Decode a body. Raises InvalidRequest naming the field that does not fit, or that stands there twice."""
    try:
        decoded = decoder.decode(body)
        refuse_twins(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise from_decoding(error) from None
    return decoded


async def send_bytes(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Answer with a whole body."""
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_blob(send: Send, headers: Headers, blobs: BlobStore, name: str) -> None:
    """Answer with a stored file, a piece at a time. Raises NotFound where it is gone, Unavailable."""
    try:
        head = await blobs.head(name)
        pieces = await blobs.read(name)
    except BlobMissing:
        raise NotFound("This file is no longer kept.") from None
    except BlobsAway:
        raise Unavailable("The store for media is away for the moment; try again.", retry_after_s=1.0) from None
    headers.append((b"content-length", str(head.size_bytes).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_json(send: Send, status: int, headers: Headers, value: Any) -> None:
    """Answer with JSON."""
    headers.append((b"content-type", b"application/json"))
    await send_bytes(send, status, headers, _encode(value))


async def send_error(send: Send, error: FaregateError, body: dict[str, Any]) -> None:
    """Answer with an error that a family has rendered."""
    await send_bytes(send, error.status, error_headers(error), _encode(body))
