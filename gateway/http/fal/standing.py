"""How a request of any family stands, what it gave, and stopping it: for those who poll, and those who listen."""

import asyncio
import time

import msgspec
from litestar.types import Scope, Send

from gateway.errors import NotFound
from gateway.flow.glance import Glances
from gateway.flow.view import View
from gateway.http.departures import has_left
from gateway.http.dialect import Dialect
from gateway.http.endpoint import Exchange
from gateway.http.errors import Headers
from gateway.http.fal.calls import query
from gateway.http.fal.errors import fal_body, fal_headers
from gateway.http.fal.submit import ids
from gateway.http.fal.views import billable_units, failure_of, made_of_view, result_of, status_of
from gateway.http.raw import send_bytes, send_json
from gateway.money import usd_text

LOOK_S = 0.25
"""Between two looks for a caller who listens."""
QUIET_S = 10.0
"""A stream without news says at least this often that it lives: fal's JavaScript client waits 15 s."""
_encode = msgspec.json.encode


class Standing:
    """Serves what lies below `/fal/{owner}/{app}/requests/{id}`."""

    def __init__(self, dialect: Dialect, glances: Glances) -> None:
        self._dialect = dialect
        self._glances = glances

    async def status(self, scope: Scope, exchange: Exchange, app: str, request_id: str) -> None:
        """Say how a request stands: 202 while it is open, 200 once it has ended."""
        view = await self._glances.view_for(exchange.head.secret, request_id)
        shown = status_of(view, self._base(app), logs=_wanted(scope))
        await send_json(exchange.send, 202 if view.finished_us is None else 200, told_of(view), shown)

    async def status_stream(self, scope: Scope, exchange: Exchange, app: str, request_id: str) -> None:
        """Tell each change of a request's status as a server-sent event, to its end."""
        secret, logs, base = exchange.head.secret, _wanted(scope), self._base(app)
        view = await self._glances.view_for(secret, request_id)
        headers = [*ids(request_id), (b"content-type", b"text/event-stream; charset=utf-8")]
        await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
        last, told_s = None, time.monotonic()
        while True:
            standing = (view.status, view.position, view.progress)
            if standing != last:
                last, told_s = standing, time.monotonic()
                await _event(exchange.send, b"data: " + _encode(status_of(view, base, logs=logs)))
            elif time.monotonic() - told_s > QUIET_S:
                told_s = time.monotonic()
                await _event(exchange.send, b": waiting")
            if view.finished_us is not None or await has_left(exchange.receive):
                break
            await asyncio.sleep(LOOK_S)
            view = await self._glances.view_for(secret, request_id)
        await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def result(self, _: Scope, exchange: Exchange, app: str, request_id: str) -> None:
        """Give the output of a request that succeeded; else its error, or 400 while it is open."""
        view = await self._dialect.watch.view_for(exchange.head.secret, request_id)
        if view.finished_us is None:
            body = {"detail": "Request is still in progress", "error_type": "bad_request"}
            headers = [*ids(request_id), (b"x-fal-error-type", b"bad_request")]
            await send_json(exchange.send, 400, headers, body)
            return
        error = failure_of(view)
        if error is not None:
            raise error
        if view.output is None:
            raise NotFound("The output of this request is no longer kept.", request_id=request_id)
        shown = result_of(made_of_view(view), self._dialect.addresses)
        await send_json(exchange.send, 200, told_of(view), shown)

    async def cancel(self, _: Scope, exchange: Exchange, app: str, request_id: str) -> None:
        """Stop a request: 202, or 400 where it has ended already."""
        secret = exchange.head.secret
        try:
            view = await self._dialect.watch.view_for(secret, request_id)
        except NotFound as error:
            body = fal_body(error) | {"status": "NOT_FOUND"}
            await send_bytes(exchange.send, 404, fal_headers(error), _encode(body))
            return
        if view.finished_us is not None:
            body = {"status": "ALREADY_COMPLETED", "detail": "Request is already completed"}
            await send_json(exchange.send, 400, ids(request_id), body)
            return
        await self._dialect.watch.cancel(secret, request_id)
        await send_json(exchange.send, 202, ids(request_id), {"status": "CANCELLATION_REQUESTED"})

    def _base(self, app: str) -> str:
        return f"{self._dialect.base}/fal/{app}"


def told_of(view: View) -> Headers:
    """Give the headers of a request that is read: its id, and once it has ended, its charge."""
    headers = ids(view.id)
    if view.finished_us is None:
        return headers
    return [
        *headers,
        (b"x-fal-billable-units", billable_units(view.units).encode()),
        (b"x-faregate-charge-nanos", str(view.charge_nanos).encode()),
        (b"x-faregate-cost", usd_text(view.charge_nanos).encode()),
        (b"x-faregate-price-version", str(view.price_version).encode()),
    ]


def _wanted(scope: Scope) -> bool:
    return query(scope, "logs").lower() in ("1", "true")


async def _event(send: Send, line: bytes) -> None:
    await send({"type": "http.response.body", "body": line + b"\n\n", "more_body": True})
