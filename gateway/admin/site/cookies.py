"""The site's cookies: one for each kind of session, one for a form before there is a session, one for a toast."""

import base64
import binascii
import hashlib
import hmac
from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import Cookie, State

from gateway.admin.site.visitor import Kind

SESSION = {"operator": "faregate_admin", "owner": "faregate_usage"}
PATH = {"operator": "/admin", "owner": "/usage"}
BEFORE = "faregate_before"
TOAST = "faregate_toast"
TOAST_S = 60
BEFORE_S = 3600

AnyRequest = Request[Any, Any, State]


class Toast(msgspec.Struct, frozen=True, kw_only=True):
    """A line that the next page shows once."""

    text: str
    kind: str = "done"
    """`done` or `failed`."""
    audit_id: int = 0


class Signer:
    """Signs what a browser keeps for us, so that it comes back as we wrote it."""

    def __init__(self, secret: str) -> None:
        self._key = hmac.new(secret.encode(), b"faregate dashboard 1", hashlib.sha256).digest()

    def mark(self, purpose: str, text: str) -> str:
        """Give the mark of a text for one purpose."""
        said = hmac.new(self._key, f"{purpose}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(said).rstrip(b"=").decode()

    def sign(self, purpose: str, content: bytes) -> str:
        """Write a content with its mark."""
        text = base64.urlsafe_b64encode(content).rstrip(b"=").decode()
        return f"{text}.{self.mark(purpose, text)}"

    def read(self, purpose: str, signed: str) -> bytes | None:
        """Read a content back; None unless it is ours, and for this purpose."""
        text, _, mark = signed.rpartition(".")
        if not hmac.compare_digest(self.mark(purpose, text).encode(), mark.encode("utf-8", "replace")):
            return None
        try:
            return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except (binascii.Error, ValueError):
            return None


def session_cookie(kind: Kind, token: str, *, secure: bool, lasts_s: int) -> Cookie:
    """Write the cookie of a session. Lax, since the way back from an identity provider comes from elsewhere."""
    return Cookie(
        key=SESSION[kind],
        value=token,
        path=PATH[kind],
        httponly=True,
        samesite="lax",
        secure=secure,
        max_age=lasts_s,
    )


def brief_cookie(name: str, value: str, *, path: str, secure: bool, lasts_s: int) -> Cookie:
    """Write a cookie that serves for moments; an empty one removes it."""
    return Cookie(
        key=name, value=value, path=path, httponly=True, samesite="lax", secure=secure, max_age=lasts_s if value else 0
    )
