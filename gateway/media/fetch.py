"""Fetching what a caller names by URL: public addresses only, at most three redirects, each judged anew."""

import asyncio
from collections.abc import AsyncGenerator

import httpx

from gateway.errors import InvalidRequest
from gateway.net.addresses import Allowed, UrlNotAllowed, resolve_public
from gateway.net.client import PORTS, check_url, guarded_client

MOST_REDIRECTS = 3


class UrlNotFetched(InvalidRequest):
    """A URL that may be reached and did not give a file."""

    default_code = "url_not_fetched"


class Fetcher:
    """Fetches files over HTTP. One a gateway process."""

    def __init__(self, allowed: Allowed, timeout_s: float) -> None:
        self._allowed = allowed
        self._client = guarded_client(allowed, timeout_s=timeout_s)
        self._timeout_s = timeout_s

    async def pieces(self, text: str, param: str) -> AsyncGenerator[bytes, None]:
        """Give the file at a URL as it comes; whoever reads it counts the bytes.

        Raises UrlNotAllowed or UrlNotFetched, both naming the field, and neither what stands at the address.
        """
        end = asyncio.get_running_loop().time() + self._timeout_s
        try:
            async with asyncio.timeout_at(end):
                answer = await self._open(text)
            try:
                pieces = answer.aiter_raw()
                while True:
                    async with asyncio.timeout_at(end):
                        piece = await anext(pieces, None)
                    if piece is None:
                        return
                    yield piece
            finally:
                await answer.aclose()
        except UrlNotAllowed:
            raise UrlNotAllowed(param) from None
        except TimeoutError:
            raise UrlNotFetched(f"This URL did not give its file in {self._timeout_s:g} s.", param=param) from None
        except (httpx.HTTPError, httpx.InvalidURL):
            raise UrlNotFetched("This URL did not give a file.", param=param) from None

    async def check(self, text: str, param: str) -> None:
        """Judge an address that is to be called later, by what its name comes to now. Raises UrlNotAllowed."""
        try:
            url = check_url(text)
            await resolve_public(url.host, url.port or PORTS[url.scheme], self._allowed)
        except UrlNotAllowed:
            raise UrlNotAllowed(param) from None

    async def _open(self, text: str) -> httpx.Response:
        """Follow redirects by hand: the client judges each address, and this counts them."""
        url = check_url(text)
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._client.send(self._client.build_request("GET", url), stream=True)
            if answer.status_code == 200:
                return answer
            target = answer.headers.get("location", "") if answer.is_redirect else ""
            await answer.aclose()
            if not target:
                raise httpx.HTTPError("no file")
            url = check_url(str(url.join(target)))
        raise UrlNotAllowed

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
