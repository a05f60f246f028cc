"""Stored media over HTTP: ranges and entity tags (RFC 9110), and headers that let a browser do nothing but play."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from litestar import Controller, HttpMethod, Request, Response, route
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.response import Stream

from gateway.blobs.names import check_name, media_type_of
from gateway.blobs.store import BlobHead, BlobMissing, BlobsAway, BlobStore
from gateway.errors import NotFound, Unavailable
from gateway.media.addresses import Addresses

BlobName = Annotated[str, PathParameter(description="The name of the file, as it stands in the address")]
Text = Annotated[str, QueryParameter(description="As it stands in the address")]

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
POLICY = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""What a browser needs to show a picture or play a film by itself, and nothing else."""

_SHOWN = ("image/", "video/", "audio/")


def per_method(name: str) -> Callable[[Any, HttpMethod | str, Any], str]:
    """Name an operation that is served by several methods: their names must differ."""
    return lambda _, method, __: f"{method.lower()}_{name}"


class BlobsController(Controller):
    """Media at signed addresses: whoever has the address may read."""

    path = "/v1/blobs"
    tags = ("Files",)

    @route(
        "/{name:path}",
        http_method=[HttpMethod.GET, HttpMethod.HEAD],
        summary="A media file at a signed address; ranges are served, no key is needed",
        operation_id=per_method("blob"),
    )
    async def read(
        self,
        request: Request[Any, Any, State],
        name: BlobName,
        blobs: NamedDependency[BlobStore],
        addresses: NamedDependency[Addresses],
        expires: Text = "",
        signature: Text = "",
    ) -> Response[Any]:
        """Serve one file, or a part of it."""
        blob = name.lstrip("/")
        addresses.check(blob, expires, signature)
        return await blob_answer(request, blobs, blob, media_type_of(blob))


async def blob_answer(
    request: Request[Any, Any, State], blobs: BlobStore, name: str, media_type: str, filename: str = ""
) -> Response[Any]:
    """Answer a GET or HEAD for a blob: 200, 206, 304 or 416. Raises NotFound where it is gone, Unavailable."""
    try:
        check_name(name)
        head = await blobs.head(name)
        part = wanted_part(request.headers, head)
        headers = _headers(head, media_type, filename or name.rpartition("/")[2])
        if request.headers.get("if-none-match", "").strip() in (f'"{head.etag}"', "*"):
            return Response(None, status_code=304, headers=headers)
        if part is None:
            headers["content-range"] = f"bytes */{head.size_bytes}"
            return Response(None, status_code=416, headers=headers)
        start, end = part
        status = 200
        if (end - start) != head.size_bytes:
            status, headers["content-range"] = 206, f"bytes {start}-{end - 1}/{head.size_bytes}"
        headers["content-length"] = str(end - start)
        if request.method == HttpMethod.HEAD:
            return Response(b"", status_code=status, headers=headers, media_type=media_type)
        pieces = await blobs.read(name, start, end)
    except (BlobMissing, ValueError):
        raise NotFound("This file is no longer kept.") from None
    except BlobsAway:
        raise Unavailable("The store for media is away for the moment; try again.", retry_after_s=1.0) from None
    return Stream(pieces, status_code=status, headers=headers, media_type=media_type)


def wanted_part(headers: Mapping[str, str], head: BlobHead) -> tuple[int, int] | None:
    """Read `Range` and `If-Range` as from where to before where; None where no such part exists.

    One range is served. Several, other units, and a range for another version of the file mean all of it.
    """
    size = head.size_bytes
    given = headers.get("range")
    found = _RANGE.fullmatch(given.strip()) if given else None
    if found is None or found[0] == "bytes=-" or headers.get("if-range", f'"{head.etag}"').strip() != f'"{head.etag}"':
        return 0, size
    first, last = found[1], found[2]
    if not first:
        return (max(0, size - int(last)), size) if int(last) and size else None
    start, end = int(first), min(int(last) + 1 if last else size, size)
    if last and int(last) < start:
        return 0, size  # not a range at all (RFC 9110, 14.1.1)
    return (start, end) if start < size else None


def _headers(head: BlobHead, media_type: str, filename: str) -> dict[str, str]:
    """Give what goes with every answer. Whatever a file says it is, it is never run as a page of ours."""
    kind = "inline" if media_type.startswith(_SHOWN) else "attachment"
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", filename)[:120]
    return {
        "etag": f'"{head.etag}"',
        "accept-ranges": "bytes",
        "cache-control": "private, max-age=3600",
        "content-disposition": f'{kind}; filename="{plain}"',
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "cross-origin",
    }
