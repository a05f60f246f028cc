"""The front door: hot endpoints are served at once, everything else by Litestar.

The hot ones stand in Litestar's routes too, where they are described and tested; going round its router
and its exception middleware spares them 12% of a gateway's time.
"""

from collections.abc import Awaitable, Mapping
from typing import Any

from litestar import Litestar
from litestar.types import Receive, Scope, Send

from gateway.flow.origin import ORIGIN, Origin
from gateway.http.endpoint import AsgiHandler
from gateway.http.limit_headers import limit_headers
from gateway.net.addresses import Network


class Front:
    """An ASGI application.

    `below` has what serves all that begins with a prefix, `site` serves the pages, `litestar` the rest.
    """

    def __init__(
        self,
        hot: Mapping[str, AsgiHandler],
        below: Mapping[str, AsgiHandler],
        site: AsgiHandler,
        litestar: Litestar,
        proxies: tuple[Network, ...] = (),
    ) -> None:
        self._hot = hot
        self._below = below
        self._site = site
        self._proxies = proxies
        self.litestar = litestar

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a call, or the process' lifespan."""
        client = scope.get("client")
        origin = Origin(client[0] if client else "", scope.get("headers", ()), self._proxies)
        ORIGIN.set(origin)
        path = scope.get("path", "")
        handler = self._hot.get(path) or self._below.get(path[: path.find("/", 1) + 1])
        if handler is None:
            handler = self._site if is_page(path) else self.litestar
        return handler(scope, receive, _telling(origin, send))


def is_page(path: str) -> bool:
    """Say whether an address is one of the dashboard's or of the owners' pages."""
    return path == "/" or (path.startswith(("/admin", "/usage", "/assets/")) and not path.startswith("/admin/api"))


def _telling(origin: Origin, send: Send) -> Send:
    """Send an answer with the headers of its caller's limits, where there are any: in every family, of errors too."""

    def told(message: Any) -> Awaitable[None]:
        if origin.standing and message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *limit_headers(origin.standing)]
        return send(message)

    return told
