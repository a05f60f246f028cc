"""Every path of the fal family, and what serves it. Bare ASGI: its clients poll ten times a second."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from litestar.types import Receive, Scope, Send

from gateway.errors import FaregateError, NotFound
from gateway.flow.glance import Glances
from gateway.http.dialect import Dialect
from gateway.http.endpoint import Desk, Exchange
from gateway.http.errors import told
from gateway.http.fal.errors import fal_body, fal_headers, fal_status
from gateway.http.fal.names import NAMESPACES, fal_names
from gateway.http.fal.parts import Parts
from gateway.http.fal.run import Run
from gateway.http.fal.standing import Standing
from gateway.http.fal.storage import Storage
from gateway.http.fal.submit import Submit
from gateway.http.raw import read_head, send_bytes, send_json
from gateway.media.files import FILE_PREFIX, Files
from gateway.webhooks.public_keys import PublicKeys

PREFIX = "/fal/"
JWKS_PATH = "/fal/.well-known/jwks.json"
_JWKS_LASTS = (b"cache-control", b"public, max-age=3600")
"""Receivers keep the keys for up to a day."""

Serve = Callable[[Scope, Exchange], Awaitable[None]]
_encode = msgspec.json.encode


class FalDoor:
    """Serves all that lies below `/fal/`."""

    def __init__(self, desk: Desk, files: Files, public_keys: PublicKeys) -> None:
        dialect = Dialect("fal", fal_names(), desk)
        self._metrics = desk.metrics
        self._public_keys = public_keys
        self._submit = Submit(dialect, desk.most_bytes)
        self._run = Run(dialect, desk)
        self._storage = Storage(desk.way, files, desk.addresses)
        self._parts = Parts(self._storage, files, desk.blobs, desk.addresses)
        standing = Standing(dialect, Glances(desk.way, desk.watch))
        self._fixed: Mapping[str, tuple[str, Serve]] = {
            JWKS_PATH: ("GET", self._jwks),
            "/fal/storage/auth/token": ("POST", self._storage.token),
            "/fal/storage/upload/initiate": ("POST", self._storage.initiate),
            "/fal/files/upload": ("POST", self._storage.upload),
            "/fal/files/upload/multipart": ("POST", self._parts.begin),
        }
        self._below = {
            (): ("GET", standing.result),
            ("response",): ("GET", standing.result),
            ("status",): ("GET", standing.status),
            ("status", "stream"): ("GET", standing.status_stream),
            ("cancel",): ("PUT", standing.cancel),
        }

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        path: str = scope["path"]
        try:
            method, serve = self._served(path)
            if scope["method"] != method:  # type: ignore[typeddict-item]
                await send_bytes(send, 405, [(b"allow", method.encode())], b"")
                return
            await serve(scope, Exchange(read_head(scope), receive, send))
        except Exception as error:
            refusal = told(error, path)
            self._metrics.refused(refusal.code)
            await _refuse(send, refusal)

    def _served(self, path: str) -> tuple[str, Serve]:
        """Find what serves a path, and by which method. Raises NotFound."""
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed
        parts = path.removeprefix(PREFIX).split("/")
        if not all(parts):
            raise NotFound("There is nothing at this address.")
        if "requests" in parts[1:4]:
            return self._request(parts)
        if len(parts) == 3 and parts[:2] == ["storage", "upload"]:
            return "PUT", lambda scope, exchange: self._storage.put(scope, exchange, parts[2])
        if len(parts) > 2 and parts[1] == "files" and parts[2].startswith(FILE_PREFIX):
            return self._file(parts)
        if parts[0] == "run" and len(parts) > 1:
            return "POST", lambda scope, exchange: self._run.run(scope, exchange, parts[1:])
        return "POST", lambda scope, exchange: self._submit.serve(scope, exchange, parts)

    def _request(self, parts: list[str]) -> tuple[str, Serve]:
        """Find what serves a request: it lies below the owner and the name of its app, or below our own name."""
        at = parts.index("requests", 1)
        found = self._below.get(tuple(parts[at + 2 :]))
        if found is None or len(parts) < at + 2 or (at == 3) != (parts[0] in NAMESPACES and at > 2):
            raise NotFound("There is nothing at this address.")
        method, serve = found
        return method, lambda scope, exchange: serve(scope, exchange, "/".join(parts[:at]), parts[at + 1])

    def _file(self, parts: list[str]) -> tuple[str, Serve]:
        """Find what serves a file: it lies below the ticket that shows it, and its parts below itself."""
        if len(parts) == 3:
            return "GET", lambda scope, exchange: self._storage.show(scope, exchange, parts[0], parts[2])
        if len(parts) != 6 or parts[3] != "multipart":
            raise NotFound("There is nothing at this address.")
        if parts[5] == "complete":
            return "POST", lambda _, exchange: self._parts.complete(exchange, parts[2], parts[4])
        return "PUT", lambda _, exchange: self._parts.put(exchange, parts[2], parts[4], parts[5])

    async def _jwks(self, _: Scope, exchange: Exchange) -> None:
        await send_json(exchange.send, 200, [_JWKS_LASTS], await self._public_keys.shown())


async def _refuse(send: Send, error: FaregateError) -> None:
    await send_bytes(send, fal_status(error), fal_headers(error), _encode(fal_body(error)))
