"""One error tree, one renderer for each API family; `handlers.py` has what Litestar calls."""

import math
from http import HTTPStatus
from typing import Any

import msgspec
import structlog

from gateway.errors import FaregateError, InvalidRequest, Unavailable, misfit
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
    if error.hangs_up:
        headers.append((b"connection", b"close"))
    if error.request_id:
        headers.append((b"x-request-id", error.request_id.encode()))
    return headers


def native_body(error: FaregateError) -> dict[str, Any]:
    """Render an error for the native family and the admin API."""
    told = {"code": error.code, "message": error.message, "param": error.param, "request_id": error.request_id}
    return {"error": told | {"details": error.details} if error.details else told}


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


def gmi_body(error: FaregateError) -> dict[str, Any]:
    """Render an error as clients of GMI's request queue expect it: one text."""
    field = error.param and error.param.replace("input", "payload", 1)
    said = f"{field}: {error.message}" if field else error.message
    return {"error": said, "code": error.code, "request_id": error.request_id}


def gmi_account_body(error: FaregateError) -> dict[str, Any]:
    """Render an error of GMI's sign-in, where the text has another name."""
    return {"message": error.message, "code": error.code}


def replicate_body(error: FaregateError) -> dict[str, Any]:
    """Render an error as Replicate does: problem details (RFC 9457)."""
    return {
        "title": HTTPStatus(error.status).phrase,
        "detail": error.message if error.param is None else f"{error.param}: {error.message}",
        "status": error.status,
        "code": error.code,
        "param": error.param,
        "request_id": error.request_id,
    }


def from_decoding(error: Exception) -> FaregateError:
    """Turn what the JSON decoder found into an InvalidRequest that names the field."""
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        return misfit(text)
    if isinstance(error, RecursionError):
        return InvalidRequest("The body is nested too deeply.", code="invalid_json")
    return InvalidRequest(f"The body is not valid JSON: {text}", code="invalid_json")


def told(error: Exception, path: str) -> FaregateError:
    """Give the error as a caller may see it: a fault of our own is logged with its trace, and told without it."""
    if isinstance(error, FaregateError):
        return error
    if isinstance(error, QueueUnavailable):
        return Unavailable("The queue is away for the moment; try again.", retry_after_s=1.0)
    log.error("http.unexpected", path=path, exc_info=error)
    return FaregateError("Something went wrong here; it has been logged.")
