"""What Litestar calls when a typed controller raises: the same answers as those of the bare endpoints."""

from collections.abc import Callable
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException

from gateway.errors import FaregateError, InvalidRequest, NotFound, TooLarge
from gateway.http.errors import error_headers, told


def handlers_of(render: Callable[[FaregateError], dict[str, Any]]) -> dict[int | type[Exception], Any]:
    """Make the handlers of all that a family's typed controllers can raise, with the family's renderer."""

    def answer(_: Request[Any, Any, Any], error: FaregateError) -> Response[dict[str, Any]]:
        headers = {name.decode(): value.decode() for name, value in error_headers(error)}
        return Response(render(error), status_code=error.status, headers=headers, media_type="application/json")

    def refused(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
        if error.status_code == 413:
            return answer(request, TooLarge("The body is larger than this server accepts."))
        if error.status_code == 404:
            return answer(request, NotFound("There is nothing at this address."))
        if not 400 <= error.status_code < 500:
            return answer(request, told(error, request.url.path))
        body = render(InvalidRequest(_said(error)))
        return Response(body, status_code=error.status_code, headers=error.headers, media_type="application/json")

    def unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
        return answer(request, told(error, request.url.path))

    return {FaregateError: answer, HTTPException: refused, Exception: unexpected}


def _said(error: HTTPException) -> str:
    extra = error.extra if isinstance(error.extra, list) else []
    said = [f"{item.get('key', '')}: {item.get('message', '')}".strip(": ") for item in extra if isinstance(item, dict)]
    return "; ".join(said) or error.detail
