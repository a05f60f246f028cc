"""An HTTP client for addresses that callers name: each request is resolved once, judged, and pinned to what was judged.

It follows no redirect, takes no proxy from the environment, keeps no connection for another host, sends no cookies.
"""

from typing import Self

import httpx

from gateway.net.addresses import Allowed, UrlNotAllowed, resolve_public

MOST_URL_CHARS = 8192
PORTS = {"http": 80, "https": 443}


def check_url(text: str) -> httpx.URL:
    """Read an address: http or https, with a host, without credentials. Raises UrlNotAllowed."""
    if len(text) > MOST_URL_CHARS or not text.isprintable():
        raise UrlNotAllowed
    try:
        url = httpx.URL(text)
        host = url.host
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise UrlNotAllowed from None
    if url.scheme not in PORTS or not host or url.userinfo:
        raise UrlNotAllowed
    return url


class PinnedTransport(httpx.AsyncBaseTransport):
    """Connects to the one address that was resolved and judged; the certificate is still held against the name."""

    def __init__(self, allowed: Allowed, *, most_connections: int) -> None:
        self._allowed = allowed
        limits = httpx.Limits(max_connections=most_connections, max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(trust_env=False, limits=limits, retries=0)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises UrlNotAllowed, and httpx's own TransportErrors."""
        url = check_url(str(request.url))
        port = url.port or PORTS[url.scheme]
        address = await resolve_public(url.host, port, self._allowed)
        pinned = httpx.Request(
            request.method,
            url.copy_with(host=address),
            headers=request.headers,  # `Host` among them, as the caller wrote it
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": url.raw_host.decode("ascii")},
        )
        return await self._inner.handle_async_request(pinned)

    async def __aenter__(self) -> Self:
        """Open the transport."""
        await self._inner.__aenter__()
        return self

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def guarded_client(allowed: Allowed, *, timeout_s: float, most_connections: int = 64) -> httpx.AsyncClient:
    """Make a client that reaches public addresses and what the operator allows, and nothing else.

    Its requests raise UrlNotAllowed (a FaregateError, 400), or httpx.HTTPError for what goes wrong on the way.
    """
    return httpx.AsyncClient(
        transport=PinnedTransport(allowed, most_connections=most_connections),
        follow_redirects=False,
        trust_env=False,
        timeout=httpx.Timeout(timeout_s),
        headers={"user-agent": "faregate", "accept-encoding": "identity"},
    )
