"""The queue host: a request is accepted, and looked at later by the addresses of the answer."""

import hashlib

from litestar.types import Scope

from gateway.errors import FaregateError
from gateway.flow.authenticate import identify
from gateway.http.dialect import Dialect
from gateway.http.endpoint import Exchange
from gateway.http.errors import Headers
from gateway.http.fal.calls import Read, in_fals_words, read_call
from gateway.http.fal.names import named
from gateway.http.fal.repeats import Repeats
from gateway.http.fal.views import links
from gateway.http.raw import read_body, send_json
from gateway.ledger.admission import Replay


class Submit:
    """Serves `POST /fal/{owner}/{app}[/{path}]`."""

    def __init__(self, dialect: Dialect, most_bytes: int) -> None:
        self._dialect = dialect
        self._repeats = Repeats()
        self._most_bytes = most_bytes

    async def serve(self, scope: Scope, exchange: Exchange, parts: list[str]) -> None:
        """Serve one call."""
        dialect, head = self._dialect, exchange.head
        await identify(dialect.way.keyring, head.secret)
        raw = await read_body(exchange.receive, head, self._most_bytes)
        found = named(dialect.names, dialect.way.snapshot(), parts)
        read = read_call(dialect, exchange, scope, raw, found)
        request_id = await self._placed(scope, exchange, raw, read)
        body = {"status": "IN_QUEUE", "gateway_request_id": request_id, "queue_position": 0}
        body |= links(f"{dialect.base}/fal/{found.app}", request_id)
        await send_json(exchange.send, 200, ids(request_id), body)

    async def _placed(self, scope: Scope, exchange: Exchange, raw: bytes, read: Read) -> str:
        """Put a call on its way, unless it repeats one whose answer was never read. Answers the request's id."""
        head = exchange.head
        told = (head.secret.encode(), scope["path"].encode(), scope["query_string"], raw)
        digest = hashlib.sha256(b"\n".join(told)).digest()
        earlier = None if head.idempotency_key else await self._repeats.earlier(digest)
        if earlier is not None:
            return earlier
        first = self._repeats.begin(digest, exchange.receive)
        try:
            placed = await self._dialect.way.submit(read.call)
        except FaregateError as error:
            self._repeats.refused(digest, first)
            raise in_fals_words(error, read) from None
        except BaseException:
            self._repeats.refused(digest, first)
            raise
        request_id = placed.request_id if isinstance(placed, Replay) else placed.id
        await self._repeats.accepted(digest, first, request_id)
        return request_id


def ids(request_id: str) -> Headers:
    """Give the headers that name a request, in fal's words and in ours."""
    told = request_id.encode()
    return [(b"x-fal-request-id", told), (b"x-request-id", told), (b"cache-control", b"no-store")]
