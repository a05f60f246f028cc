"""What a page answers when something is wrong: a page in the same frame, or a part that htmx can put in place."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import structlog
from litestar import Response
from litestar.exceptions import HTTPException
from litestar.response import Redirect

from gateway.admin.site.cookies import PATH, AnyRequest
from gateway.admin.site.csrf import SAFE
from gateway.admin.site.gate import SignInNeeded
from gateway.admin.site.view import View
from gateway.errors import FaregateError, NotFound

log = structlog.get_logger()


def failure_handlers(view_of: Callable[[AnyRequest], View]) -> dict[int | type[Exception], Any]:
    """Make the handlers of all that pages raise."""

    def told(request: AnyRequest, error: FaregateError) -> Response[Any]:
        return _page(view_of(request), error.status, error.message, error.code)

    def sign_in(request: AnyRequest, error: SignInNeeded) -> Response[Any]:
        return _to_sign_in(view_of(request), error)

    def refused(request: AnyRequest, error: HTTPException) -> Response[Any]:
        if error.status_code == 404:
            return told(request, NotFound("There is no page at this address."))
        if not 400 <= error.status_code < 500:
            return unexpected(request, error)
        return _page(view_of(request), error.status_code, error.detail, "invalid_request")

    def unexpected(request: AnyRequest, error: Exception) -> Response[Any]:
        view = view_of(request)
        log.error("page.unexpected", path=request.url.path, page_id=view.page_id, exc_info=error)
        return _page(view, 500, "Something went wrong here; it has been logged.", "internal_error")

    return {SignInNeeded: sign_in, FaregateError: told, HTTPException: refused, Exception: unexpected}


def _page(view: View, status: int, message: str, code: str) -> Response[Any]:
    if view.wants_data:
        body = {"error": {"code": code, "message": message, "param": None, "request_id": view.page_id}}
        answer: Response[Any] = view.json(body)
        answer.status_code = status
        return answer
    title = HTTPStatus(status).phrase
    return view.render("failure.html", status=status, title=title, message=message, status_shown=status)


def _to_sign_in(view: View, error: SignInNeeded) -> Response[Any]:
    if view.wants_data:
        return _page(view, 401, "Sign in first.", "sign_in_needed")
    path = view.request.url.path
    target = f"{PATH[error.kind]}/sign-in"
    if view.request.method in SAFE and not view.is_htmx:
        query = f"?{view.request.url.query}" if view.request.url.query else ""
        return Redirect(f"{target}?next={quote(path + query, safe='')}", status_code=303)
    if view.is_htmx:
        return Response("", status_code=401, headers={"hx-redirect": target}, media_type="text/html")
    return _page(view, 401, "Your session is over: sign in again.", "sign_in_needed")
