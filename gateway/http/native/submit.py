"""`POST /v1/requests`: accepted with 202, or answered with 200 where `Prefer: wait=n` was long enough."""

import asyncio
import re
from typing import Any

import msgspec
from litestar.types import Receive, Scope, Send

from gateway.flow.call import Call
from gateway.flow.way import Placed
from gateway.http.answers import answer_headers
from gateway.http.endpoint import Desk
from gateway.http.errors import native_body, told
from gateway.http.native.bodies import SubmitBody
from gateway.http.native.views import accepted_view, answer_view, request_view
from gateway.http.raw import Head, body_hash, decode, read_body, read_head, send_bytes, send_error, send_json
from gateway.http.wishes import limit_nanos, wish_from
from gateway.ledger.admission import Replay
from gateway.net.addresses import UrlNotAllowed
from gateway.net.client import check_url

_DECODER = msgspec.json.Decoder(SubmitBody)
_WAIT = re.compile(r"(?:^|[,;\s])wait(?:\s*=\s*(\d{1,6}))?(?:$|[,;\s])")
MOST_WAIT_S = 300
DEFAULT_WAIT_S = 60


def wait_s(prefer: str) -> int:
    """Read `Prefer: wait=n` (RFC 7240) as seconds, at most 300; 0 where the caller does not want to wait."""
    found = _WAIT.search(prefer)
    if found is None:
        return 0
    return min(int(found[1]), MOST_WAIT_S) if found[1] else DEFAULT_WAIT_S


class SubmitEndpoint:
    """Serves `POST /v1/requests` as a bare ASGI handler."""

    path = "/v1/requests"

    def __init__(self, desk: Desk) -> None:
        self._way = desk.way
        self._watch = desk.watch
        self._metrics = desk.metrics
        self._addresses = desk.addresses
        self._most_bytes = desk.most_bytes

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        try:
            if scope["method"] != "POST":  # type: ignore[typeddict-item]
                await send_bytes(send, 405, [(b"allow", b"POST")], b"")
                return
            await self._serve(scope, receive, send)
        except Exception as error:
            refusal = told(error, scope["path"])
            self._metrics.refused(refusal.code)
            await send_error(send, refusal, native_body(refusal))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = read_head(scope)
        body = await read_body(receive, head, self._most_bytes)
        patience_s = wait_s(head.prefer)
        call = _call(head, scope, body, patience_s)
        placed = await self._way.submit(call)
        if isinstance(placed, Replay):
            await self._replay(send, call, placed)
        elif placed.box is None:
            await self._accepted(send, placed)
        else:
            await self._wait(send, placed, patience_s)

    async def _wait(self, send: Send, placed: Placed, patience_s: int) -> None:
        """Wait as long as the caller would; the request goes on when the waiting ends."""
        try:
            answer = await asyncio.wait_for(self._way.answer(placed), patience_s)
        except TimeoutError:
            await self._accepted(send, placed)
            return
        self._metrics.answered(answer.model, answer.total_us, answer.charge_nanos)
        headers = [*answer_headers(answer), (b"preference-applied", b"wait=%d" % patience_s)]
        await send_json(send, 200, headers, answer_view(answer, self._addresses))

    async def _accepted(self, send: Send, placed: Placed) -> None:
        view = await self._watch.accepted(placed)
        await send_json(send, 202, accepted_headers(view.id), accepted_view(view))

    async def _replay(self, send: Send, call: Call, replay: Replay) -> None:
        view = await self._watch.view_for(call.secret, replay.request_id)
        status = 202 if view.finished_us is None else 200
        await send_json(send, status, accepted_headers(view.id), request_view(view, self._addresses))


def accepted_headers(request_id: str) -> list[tuple[bytes, bytes]]:
    """Give the headers of a 202: the request, and where it can be read."""
    return [(b"x-request-id", request_id.encode()), (b"location", f"/v1/requests/{request_id}".encode())]


def _address(text: str) -> str:
    """Read the address of a webhook in its plain form; where it leads is looked at once the caller is known."""
    try:
        return str(check_url(text))
    except UrlNotAllowed:
        raise UrlNotAllowed("webhook") from None


def _call(head: Head, scope: Scope, raw: bytes, patience_s: int) -> Call:
    body: Any = decode(_DECODER, raw)
    return Call(
        secret=head.secret,
        model=body.model,
        task=None,
        input=body.input,
        mode="wait" if patience_s else "async",
        keep=True,
        idempotency_key=head.idempotency_key,
        body_hash=body_hash(head, scope, raw),
        wish=wish_from(body),
        max_price_nanos=limit_nanos(body),
        quote=body.quote,
        deadline_s=body.deadline_s,
        priority=body.priority,
        metadata=body.metadata or {},
        webhook=_address(body.webhook) if body.webhook else "",
        webhook_events=body.webhook_events if body.webhook else (),
    )
