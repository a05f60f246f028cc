"""`POST /v1/quotes`: the most a request would cost, line by line, and a price that is kept for a while."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar.types import Receive, Scope, Send

from gateway.flow.call import Call
from gateway.flow.quote import Quoted
from gateway.http.endpoint import Desk
from gateway.http.errors import native_body, told
from gateway.http.openai.bodies import ModelName
from gateway.http.raw import decode, read_body, read_head, send_bytes, send_error, send_json
from gateway.money import usd_text


class QuoteBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be quoted: a model and its input, as `POST /v1/requests` takes them."""

    model: ModelName
    input: msgspec.Raw


_DECODER = msgspec.json.Decoder(QuoteBody)


class QuoteEndpoint:
    """Serves `POST /v1/quotes` as a bare ASGI handler."""

    path = "/v1/quotes"

    def __init__(self, desk: Desk) -> None:
        self._way = desk.way
        self._metrics = desk.metrics
        self._most_bytes = desk.most_bytes

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        try:
            if scope["method"] != "POST":  # type: ignore[typeddict-item]
                await send_bytes(send, 405, [(b"allow", b"POST")], b"")
                return
            head = read_head(scope)
            body: Any = decode(_DECODER, await read_body(receive, head, self._most_bytes))
            call = Call(secret=head.secret, model=body.model, task=None, input=body.input, mode="async")
            quoted, quote_id, expires_s = await self._way.quote(call)
            await send_json(send, 200, [(b"cache-control", b"no-store")], quote_view(quoted, quote_id, expires_s))
        except Exception as error:
            refusal = told(error, scope["path"])
            self._metrics.refused(refusal.code)
            await send_error(send, refusal, native_body(refusal))


def quote_view(quoted: Quoted, quote_id: str, expires_s: int) -> dict[str, Any]:
    """Show a quote: its lines sum to the ceiling, which is rounded once."""
    resolved, most = quoted.resolved, quoted.quote
    return {
        "id": quote_id,
        "model": resolved.model.name,
        "task": resolved.task,
        "ceiling_nanos": most.nanos,
        "ceiling_usd": usd_text(most.nanos),
        "lines": msgspec.to_builtins(list(most.lines)),
        "price_version": most.price.id,
        "expires_at": datetime.fromtimestamp(expires_s, UTC).isoformat().replace("+00:00", "Z"),
    }
