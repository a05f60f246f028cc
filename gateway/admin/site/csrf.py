"""Changes come from our own forms only: each brings the session's token, and the browser says where it comes from.

A form before there is a session (the sign-in itself) brings the mark of a cookie that came with it.
"""

import hmac
import secrets
from urllib.parse import urlsplit

from gateway.admin.site.cookies import BEFORE, AnyRequest, Signer
from gateway.errors import Forbidden

FIELD = "csrf_token"
HEADER = "x-csrf-token"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def check_origin(request: AnyRequest, public_origin: str) -> None:
    """Refuse what another site makes a browser send. Raises Forbidden."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise _refused()
    origin = request.headers.get("origin")
    if origin is None:
        return
    if origin != public_origin and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise _refused()


async def check_token(request: AnyRequest, wanted: str) -> None:
    """Refuse a change without the session's token, in a header or a field of its form. Raises Forbidden."""
    if not same(await given_token(request), wanted):
        raise _refused()


async def given_token(request: AnyRequest) -> str:
    """Read the token that a change brings along; empty without one."""
    if HEADER in request.headers:
        return request.headers[HEADER]
    value = (await request.form()).get(FIELD, "")
    return value if isinstance(value, str) else ""


def same(given: str, wanted: str) -> bool:
    """Compare two tokens in constant time; an empty one is never right."""
    return bool(wanted) and hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def begin(request: AnyRequest, signer: Signer) -> tuple[str, str]:
    """Give the cookie's value and the form's token of a form without a session."""
    value = request.cookies.get(BEFORE, "")
    if not 16 <= len(value) <= 64:
        value = secrets.token_urlsafe(24)
    return value, signer.mark("before", value)


async def check_before(request: AnyRequest, signer: Signer) -> None:
    """Refuse a form without a session whose token does not belong to its cookie. Raises Forbidden."""
    value = request.cookies.get(BEFORE, "")
    if not value or not same(await given_token(request), signer.mark("before", value)):
        raise _refused()


def _refused() -> Forbidden:
    return Forbidden("This did not come from a page of ours, or the page is too old: load it again.", code="csrf")
