"""How the fal family shows errors: a list of misfits for what is wrong in a body, else a sentence and a type.

Shapes and words: fal's documentation, "Model errors" and "Request error types". What fal has no word for keeps our own
code as its type.
"""

import re
from typing import Any

from gateway.errors import FaregateError, InvalidRequest
from gateway.http.errors import Headers, error_headers

_TYPES = {
    "deadline_exceeded": "request_timeout",
    "cancelled": "client_cancelled",
    "worker_lost": "runner_disconnected",
    "engine_lost": "runner_disconnected",
    "engine_error": "runner_server_error",
    "gateway_lost": "runner_connection_error",
    "answer_incomplete": "runner_incomplete_response",
    "internal_error": "internal_error",
}
_MISFITS = {"unknown_field": "extra_forbidden", "blocked": "content_policy_violation"}
CLIENT_CLOSED = 499
"""fal's status of a request that its caller stopped; 409 would be tried again by its client."""
WEBHOOK = "fal_webhook"
"""The query parameter with the address of a webhook."""
_PLACE = re.compile(r"[^.\[\]]+")


def fal_status(error: FaregateError) -> int:
    """Give the HTTP status: a call that is wrong in itself is 422, as from FastAPI."""
    if isinstance(error, InvalidRequest) or error.code == "blocked":
        return 422
    return CLIENT_CLOSED if error.code == "cancelled" else error.status


def fal_type(error: FaregateError) -> str:
    """Give the machine-readable type of an error."""
    if fal_status(error) == 422:
        return _MISFITS.get(error.code, error.code if error.code != "invalid_request" else "value_error")
    return _TYPES.get(error.code, error.code)


def fal_body(error: FaregateError) -> dict[str, Any]:
    """Render an error."""
    if fal_status(error) != 422:
        return {"detail": error.message, "error_type": fal_type(error)}
    param = error.param or ""
    where = "query" if param == WEBHOOK else "header" if param.startswith("X-") else "body"
    place = [where, *(int(part) if part.isdecimal() else part for part in _PLACE.findall(param))]
    return {"detail": [{"loc": place, "msg": error.message, "type": fal_type(error)}]}


def fal_headers(error: FaregateError) -> Headers:
    """Give the headers of an error; a deadline that the caller set is not tried again by fal's clients."""
    kind = fal_type(error).encode()
    again = b"true" if error.retryable else b"false"
    headers = [*error_headers(error), (b"x-fal-error-type", kind), (b"x-fal-retryable", again)]
    if error.request_id:
        headers.append((b"x-fal-request-id", error.request_id.encode()))
    if error.status == 504:
        headers.append((b"x-fal-request-timeout-type", b"user"))
    return headers
