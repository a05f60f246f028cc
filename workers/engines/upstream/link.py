"""The HTTP connection to one upstream: its key, limits, timeouts, and what goes wrong, as errors of an attempt.

A protocol names a method, a path below the upstream's address, and a body. It cannot reach another host with the key.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlencode

import httpx
import msgspec

from gateway.contract.pools import UpstreamSpec
from workers.engines.upstream.answer import Answer, Opened, beginning, plain_headers
from workers.engines.upstream.connection import TooLong
from workers.engines.upstream.failures import UpstreamFailed, of_status, unreadable
from workers.engines.upstream.transport import KeptBody, KeptTransport, Limits, Origin, encoded, origin_of

CONNECT_S = 5.0
MOST_ANSWER_BYTES = 64 * 1024 * 1024
"""Of an answer that is read whole, unless a call says otherwise."""
MOST_KEPT = 64
"""Heads of requests that are kept ready: those of chats are the same each time, those of jobs are not."""

Query = Mapping[str, str | int]


class FormFile(msgspec.Struct, frozen=True):
    """A file in a multipart form."""

    field: str
    name: str
    data: bytes
    media_type: str


class Speech(Protocol):
    """What a link asks of its protocol."""

    def authorize(self, key: str) -> dict[str, str]:
        """Give the headers that carry the key."""
        ...

    def judge(self, answer: Answer) -> Exception | None:
        """Say what an answer means where the usual reading of its status is wrong."""
        ...


class Link:
    """The way to one upstream. All methods raise UpstreamFailed or RefusedInput; nothing they say holds the key."""

    def __init__(
        self,
        spec: UpstreamSpec,
        key: str,
        *,
        transport: KeptTransport,
        wire: Speech,
        url: str = "",
        fresh: bool = False,
    ) -> None:
        self.name = spec.name
        self.timeout_s = float(spec.timeout_s)
        self.key = key
        self._spec = spec
        self._transport = transport
        self._wire = wire
        self._base = httpx.URL((url or spec.url).rstrip("/"))
        self._heads: dict[tuple[str, ...], tuple[Origin, bytes]] = {}
        self._limits = Limits(min(CONNECT_S, self.timeout_s), self.timeout_s, fresh)

    def fresh(self) -> "Link":
        """Give the same way over connections of their own: a call that cost money is never sent into a stale one."""
        return Link(self._spec, self.key, transport=self._transport, wire=self._wire, url=str(self._base), fresh=True)

    async def json(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Call with a JSON body, or none, and give the JSON of the answer."""
        return (await self.call(method, path, json=json, query=query, headers=headers)).json()

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        limit_bytes: int = MOST_ANSWER_BYTES,
    ) -> Answer:
        """Call with a JSON body, or none, and give the whole answer, its headers among it."""
        content, media_type = (b"", "") if json is None else (msgspec.json.encode(json), "application/json")
        return await self.send(
            method, path, content=content, media_type=media_type, query=query, headers=headers, limit_bytes=limit_bytes
        )

    async def form(
        self,
        path: str,
        *,
        fields: Mapping[str, str | Sequence[str]],
        files: Sequence[FormFile],
        headers: Mapping[str, str] | None = None,
        limit_bytes: int = MOST_ANSWER_BYTES,
    ) -> Answer:
        """Post a multipart form, and give the whole answer."""
        parts = [(file.field, (file.name, file.data, file.media_type)) for file in files]
        data = {name: list(value) if not isinstance(value, str) else value for name, value in fields.items()}
        made = httpx.Request("POST", "http://form/", data=data, files=parts)
        content = await made.aread()
        return await self.send(
            "POST",
            path,
            content=content,
            media_type=made.headers["content-type"],
            headers=headers,
            limit_bytes=limit_bytes,
        )

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes = b"",
        media_type: str = "",
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        limit_bytes: int = MOST_ANSWER_BYTES,
    ) -> Answer:
        """Call with these bytes, and give the whole answer: one that is a success, else this raises."""
        origin, wire = self._wire_of(method, path, content, media_type, query, headers)
        try:
            connection = await self._transport.exchange(origin, wire, self._limits)
            try:
                body = await connection.whole(self.timeout_s, limit_bytes)
            except BaseException:
                connection.close()
                raise
        except TooLong:
            raise unreadable(f"an answer of more than {limit_bytes} bytes") from None
        except httpx.TransportError as error:
            raise self._broken(error) from None
        answer = Answer(connection.status, plain_headers(connection), body)
        self._transport.put_back(origin, connection)
        return self._judged(answer)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        limit_bytes: int = MOST_ANSWER_BYTES,
    ) -> AsyncIterator[Opened]:
        """Call with a JSON body, and give an answer that is read as it comes; one that is no success raises here."""
        content, media_type = (b"", "") if json is None else (msgspec.json.encode(json), "application/json")
        origin, wire = self._wire_of(method, path, content, media_type, query, headers)
        try:
            connection = await self._transport.exchange(origin, wire, self._limits)
            body = KeptBody(self._transport, origin, connection, self.timeout_s)
            try:
                if not 200 <= connection.status < 300:
                    said = await beginning(body)
                    self._judged(Answer(connection.status, plain_headers(connection), said))
                yield Opened(body, connection, self.timeout_s, limit_bytes)
            finally:
                await body.aclose()
        except httpx.TransportError as error:
            raise self._broken(error) from None

    def _wire_of(
        self,
        method: str,
        path: str,
        content: bytes,
        media_type: str,
        query: Query | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[Origin, bytes]:
        """Write a request down. The heads of calls that come again are kept."""
        wanted: dict[str, str] = {"user-agent": "faregate", "accept-encoding": "identity"}
        if media_type:
            wanted["content-type"] = media_type
        wanted.update(self._wire.authorize(self.key))
        if headers:
            wanted.update(headers)
        shape = (method, path, *wanted, *wanted.values())
        found = None if query else self._heads.get(shape)
        if found is None:
            request = httpx.Request(method, self._url(path, query), headers=wanted)
            request.headers.pop("content-length", None)
            found = origin_of(request.url), encoded(request)[: -len(b"\r\n")]
            if len(self._heads) >= MOST_KEPT:
                self._heads.clear()
            if not query:
                self._heads[shape] = found
        origin, head = found
        if not content and method in ("GET", "DELETE"):
            return origin, head + b"\r\n"
        return origin, b"%bcontent-length: %d\r\n\r\n%b" % (head, len(content), content)

    def _url(self, path: str, query: Query | None) -> httpx.URL:
        """Make the address of a path, or check one that the upstream gave: the key goes to its own host only."""
        if path.startswith(("http://", "https://")):
            return self._own(path, query)
        found = httpx.URL(f"{self._base}{path}")
        return found.copy_merge_params(dict(query)) if query else found

    def _own(self, text: str, query: Query | None) -> httpx.URL:
        try:
            url = httpx.URL(text)
        except httpx.InvalidURL:
            raise unreadable("the upstream gave an address that is none") from None
        if (url.scheme, url.host, url.port) != (self._base.scheme, self._base.host, self._base.port):
            raise unreadable("the upstream gave an address at another host, which must not get the key")
        return url.copy_merge_params(dict(query)) if query else url

    def _broken(self, error: httpx.TransportError) -> UpstreamFailed:
        if isinstance(error, httpx.TimeoutException):
            return _timed_out(self.timeout_s, isinstance(error, httpx.ConnectTimeout))
        sent = not isinstance(error, httpx.ConnectError)
        detail = f"the connection broke ({type(error).__name__})" if sent else "no connection"
        return UpstreamFailed("The provider cannot be reached.", detail=detail, sent=sent, wide=not sent)

    def _judged(self, answer: Answer) -> Answer:
        error = self._wire.judge(answer)
        if error is None and not 200 <= answer.status < 300:
            error = of_status(answer.status, answer.headers, answer.body)
        if error is not None:
            raise error
        return answer


def query_text(query: Query) -> str:
    """Encode a query, for protocols that put it into a path themselves."""
    return urlencode(query)


def _timed_out(after_s: float, connecting: bool = False) -> UpstreamFailed:
    return UpstreamFailed(
        "The provider did not answer in time.",
        reason="upstream_timeout",
        detail="no connection in time" if connecting else f"no answer within {after_s:g} s",
        sent=not connecting,
        wide=connecting,
    )
