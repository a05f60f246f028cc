"""One error tree, one renderer for each API family."""

import math
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from gateway.errors import FaregateError, InvalidRequest, NotFound, TooLarge, Unavailable
from gateway.queues.port import QueueUnavailable

log = structlog.get_logger()

Headers = list[tuple[bytes, bytes]]

_JSON = (b"content-type", b"application/json")

_OPENAI_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


def error_headers(error: FaregateError) -> Headers:
    """Give the headers of an error: when to come back, whether at all, and the request it belongs to."""
    headers: Headers = [_JSON, (b"x-should-retry", b"true" if error.retryable else b"false")]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(math.ceil(error.retry_after_s)).encode()))
        headers.append((b"retry-after-ms", str(math.ceil(error.retry_after_s * 1000)).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.request_id:
        headers.append((b"x-request-id", error.request_id.encode()))
    return headers


def native_body(error: FaregateError) -> dict[str, Any]:
    """Render an error for the native family and the admin API."""
    return {
        "error": {"code": error.code, "message": error.message, "param": error.param, "request_id": error.request_id}
    }


def openai_body(error: FaregateError) -> dict[str, Any]:
    """Render an error as the OpenAI clients expect it."""
    return {
        "error": {
            "message": error.message,
            "type": _OPENAI_TYPES.get(error.status, "api_error"),
            "param": error.param,
            "code": error.code,
            "request_id": error.request_id,
        }
    }


def from_decoding(error: Exception) -> FaregateError:
    """Turn what the JSON decoder found into an InvalidRequest that names the field."""
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        message, _, path = text.partition(" - at `$")
        param = path.rstrip("`").lstrip(".") or None
        for said in ("unknown field `", "missing required field `"):
            if said in message:
                name = message.split(said, 1)[1].rstrip("`")
                return InvalidRequest(message, code="unknown_field" if "unknown" in said else None,
                                      param=f"{param}.{name}" if param else name)  # fmt: skip
        return InvalidRequest(message, param=param)
    if isinstance(error, RecursionError):
        return InvalidRequest("The body is nested too deeply.", code="invalid_json")
    return InvalidRequest(f"The body is not valid JSON: {text}", code="invalid_json")


def handle_faregate(_: Request[Any, Any, Any], error: FaregateError) -> Response[dict[str, Any]]:
    """Answer a FaregateError of a typed controller."""
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    return Response(native_body(error), status_code=error.status, headers=headers, media_type="application/json")


def handle_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """Answer what Litestar itself refuses, in the same shape."""
    if error.status_code == 404:
        return handle_faregate(request, NotFound("There is nothing at this address."))
    if error.status_code == 413:
        return handle_faregate(request, TooLarge("The body is larger than this server accepts."))
    if 400 <= error.status_code < 500:
        refusal = InvalidRequest(_said(error))
        body = native_body(refusal)
        return Response(body, status_code=error.status_code, headers=error.headers, media_type="application/json")
    return handle_unexpected(request, error)


def _said(error: HTTPException) -> str:
    extra = error.extra if isinstance(error.extra, list) else []
    told = [f"{item.get('key', '')}: {item.get('message', '')}".strip(": ") for item in extra if isinstance(item, dict)]
    return "; ".join(told) or error.detail


def handle_unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """Answer a fault of our own."""
    return handle_faregate(request, told(error, request.url.path))


def told(error: Exception, path: str) -> FaregateError:
    """Give the error as a caller may see it: a fault of our own is logged with its trace, and told without it."""
    if isinstance(error, FaregateError):
        return error
    if isinstance(error, QueueUnavailable):
        return Unavailable("The queue is away for the moment; try again.", retry_after_s=1.0)
    log.error("http.unexpected", path=path, exc_info=error)
    return FaregateError("Something went wrong here; it has been logged.")
