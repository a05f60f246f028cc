"""From a path, its headers and a payload to a call."""

import math
from typing import Any
from urllib.parse import parse_qs

import msgspec
from litestar import Request
from litestar.types import Scope

from gateway.catalog.model import Model
from gateway.errors import FaregateError, InvalidRequest
from gateway.flow.call import Call, Priority
from gateway.http.dialect import Asked, Dialect
from gateway.http.endpoint import Exchange
from gateway.http.fal.errors import WEBHOOK
from gateway.http.fal.fields import fal_given, written
from gateway.http.fal.names import Named
from gateway.http.openai.bodies import MaxPrice
from gateway.http.raw import decode
from gateway.net.addresses import UrlNotAllowed
from gateway.net.client import check_url

_PAYLOAD = msgspec.json.Decoder(dict[str, Any])
_PRIORITIES: dict[str, Priority] = {"normal": "normal", "low": "low"}
MAX_PRICE = "max_price"
MOST_DEADLINE_S = 7 * 86_400


class Read(msgspec.Struct, frozen=True):
    """A call, and what errors about it are told with."""

    call: Call
    model: Model
    payload: dict[str, Any]


def header(scope: Scope, name: bytes) -> str:
    """Give a header's value; empty where it is not there."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def query(scope: Scope, name: str) -> str:
    """Give the first value of a query parameter; empty where it is not there."""
    text = scope["query_string"].decode("latin-1")
    return parse_qs(text, keep_blank_values=True).get(name, [""])[0] if name in text else ""


def read_call(dialect: Dialect, exchange: Exchange, scope: Scope, raw: bytes, found: Named) -> Read:
    """Read one call of any of the hosts. Raises InvalidRequest naming the field as fal's callers write it."""
    payload = decode(_PAYLOAD, raw)
    webhook = query(scope, WEBHOOK)
    model = found.model
    said = {name: value for name, value in payload.items() if name != MAX_PRICE or name in model.parameters}
    asked = Asked(
        model=model.name,
        given=fal_given(model, said),
        max_price=_max_price(payload.get(MAX_PRICE)) if MAX_PRICE not in said else None,
        priority=_priority(header(scope, b"x-fal-queue-priority")),
        deadline_s=_deadline_s(header(scope, b"x-fal-request-timeout")),
        webhook=_address(webhook) if webhook else "",
        webhook_events=("completed",) if webhook else (),
    )
    request = Request[Any, Any, Any](scope, receive=exchange.receive, send=exchange.send)
    return Read(dialect.call(request, raw, asked), model, payload)


def in_fals_words(error: FaregateError, read: Read) -> FaregateError:
    """Name the field of an error as the caller wrote it."""
    if error.param is not None:
        plain = error.param.removeprefix("input.")
        field, below = plain, ""
        for at, sign in enumerate(plain):
            if sign in ".[":
                field, below = plain[:at], plain[at:]
                break
        ours = written(read.model, read.payload, field) + below
        error.param = WEBHOOK if ours == "webhook" and read.call.webhook else ours
    return error


def _max_price(given: Any) -> str | float | None:
    """Read the most that the caller will pay, in US dollars: ours, not fal's."""
    try:
        read: str | float | None = msgspec.convert(given, MaxPrice | None)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"max_price: {error}", param=MAX_PRICE) from None
    return read


def _priority(text: str) -> Priority:
    if text and text not in _PRIORITIES:
        raise InvalidRequest("X-Fal-Queue-Priority is `normal` or `low`.", param="X-Fal-Queue-Priority")
    return _PRIORITIES[text or "normal"]


def _deadline_s(text: str) -> int | None:
    """Read the seconds within which the caller wants the request done."""
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MOST_DEADLINE_S:
        raise InvalidRequest("Give seconds, as a number above 0.", param="X-Fal-Request-Timeout")
    return math.ceil(seconds)


def _address(text: str) -> str:
    try:
        return str(check_url(text))
    except UrlNotAllowed:
        raise UrlNotAllowed(WEBHOOK) from None
